// Frames become a network's input: each pixel of the tensor is a weighted sum of the frame's pixels, as its sample's record says, and
// then one linear map of its components, a scale and a sum. The same as pipeline.wgsl, which says more.
//
// A thread makes one pixel. Neighbours in a row lie in one warp, so that single elements are stored without gaps.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 GROUP = 256;

// What is constant for a lane.
struct Lane {
    u64 sample_bytes;
    u32 pitch;
    u32 frame_width;
    u32 frame_height;
    u32 plane1; // the first byte of the chroma planes
    u32 plane2;
    u32 left_sited; // chroma samples lie in the left column of their pixels
    u32 whole_words; // pixels of four bytes lie at multiples of four
    u32 antialias;
    u32 keeps_values; // a mask, whose first component is the only channel
    u32 width; // of the tensor
    u32 height;
    u32 channels; // 1 or 3
    u32 planar;
    u32 dtype; // 0 f32, 1 f16, 2 bf16, 3 bytes
    u32 groups; // blocks of a sample
    int zero_point;
    float least; // of a byte, before the zero point is added
    float most;
    float scale[3];
    float bias[3];
    float fill[3]; // already scaled
};

enum Format { ONE, THREE, FOUR, NV12, I420 };
enum Taps { NEAREST, BILINEAR, BICUBIC };

// `Geometry::words`.
struct Record {
    float source[4];
    float resized[2];
    float offset[2];
    float code;
    float half_step[2];
    float unused;
    float color[3][4];
};

__device__ __forceinline__ float byte_at(const u8* at) {
    return static_cast<float>(__ldg(at));
}

template <Format FORMAT>
__device__ __forceinline__ float2 chroma_at(const u8* frame, const Lane& lane, u32 x, u32 y) {
    if (FORMAT == NV12) {
        const u8* pair = frame + lane.plane1 + static_cast<size_t>(y) * lane.pitch + 2 * x;
        return make_float2(byte_at(pair), byte_at(pair + 1));
    }
    const u8* at = frame + static_cast<size_t>(y) * (lane.pitch / 2) + x;
    return make_float2(byte_at(at + lane.plane1), byte_at(at + lane.plane2));
}

__device__ __forceinline__ float2 between(float2 a, float2 b, float part) {
    return make_float2(a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part);
}

// Chroma between its samples, at a pixel's centre.
template <Format FORMAT>
__device__ __forceinline__ float2 chroma_of(const u8* frame, const Lane& lane, u32 x, u32 y) {
    const u32 last_x = (lane.frame_width + 1) / 2 - 1, last_y = (lane.frame_height + 1) / 2 - 1;
    const u32 column = lane.left_sited ? x / 2 + 1 : (x + 1) / 2;
    const u32 row = (y + 1) / 2;
    const u32 x0 = min(max(column, 1u) - 1, last_x), x1 = min(column, last_x);
    const u32 y0 = min(max(row, 1u) - 1, last_y), y1 = min(row, last_y);
    const bool odd_x = x & 1, odd_y = y & 1;
    const float across = lane.left_sited ? (odd_x ? 0.5f : 0.0f) : (odd_x ? 0.25f : 0.75f);
    const float2 above = between(chroma_at<FORMAT>(frame, lane, x0, y0), chroma_at<FORMAT>(frame, lane, x1, y0), across);
    const float2 below = between(chroma_at<FORMAT>(frame, lane, x0, y1), chroma_at<FORMAT>(frame, lane, x1, y1), across);
    return between(above, below, odd_y ? 0.25f : 0.75f);
}

// The components of the pixel whose first byte this is, as they are stored.
template <Format FORMAT>
__device__ __forceinline__ float3 components_at(const u8* pixel, bool whole_words) {
    if (FORMAT == ONE) {
        return make_float3(byte_at(pixel), 0.0f, 0.0f);
    }
    if (FORMAT == FOUR && whole_words) {
        const u32 word = __ldg(reinterpret_cast<const u32*>(pixel));
        return make_float3(static_cast<float>(word & 255u), static_cast<float>((word >> 8) & 255u),
                           static_cast<float>((word >> 16) & 255u));
    }
    return make_float3(byte_at(pixel), byte_at(pixel + 1), byte_at(pixel + 2));
}

// The frame's pixels along one axis that one of the tensor's is made of: `first` to `last`, counted from the pixel in which its
// centre falls.
struct Window {
    int base;
    float part; // where in that pixel
    float shrink; // one over how much the filter is widened
    int first;
    int last;
};

template <Taps TAPS>
__device__ __forceinline__ Window window_of(int at, int length, int resized, float half_step, bool antialias) {
    const int number = (2 * at + 1) * length;
    Window window = {static_cast<int>(static_cast<float>(number) * half_step), 0.0f, 1.0f, 0, 0};
    int rest = number - window.base * 2 * resized;
    // The product was rounded.
    if (rest < 0) {
        window.base -= 1;
        rest += 2 * resized;
    } else if (rest >= 2 * resized) {
        window.base += 1;
        rest -= 2 * resized;
    }
    window.part = static_cast<float>(rest) * half_step;
    if (TAPS == NEAREST) {
        return window;
    }
    float reach = TAPS == BILINEAR ? 1.0f : 2.0f;
    if (antialias && length > resized) {
        const float stretch = static_cast<float>(2 * length) * half_step;
        reach *= stretch;
        window.shrink = 1.0f / stretch;
    }
    window.first = max(__float2int_rd(window.part - 0.5f - reach) + 1, -window.base);
    window.last = min(__float2int_ru(window.part - 0.5f + reach) - 1, length - 1 - window.base);
    return window;
}

template <Taps TAPS>
__device__ __forceinline__ float weight_of(const Window& window, int tap) {
    if (TAPS == NEAREST) {
        return 1.0f;
    }
    const float d = fabsf(static_cast<float>(tap) + 0.5f - window.part) * window.shrink;
    if (TAPS == BILINEAR) {
        return fmaxf(1.0f - d, 0.0f);
    }
    const float near = (1.5f * d - 2.5f) * d * d + 1.0f;
    const float far = ((-0.5f * d + 2.5f) * d - 4.0f) * d + 2.0f;
    return d < 1.0f ? near : d < 2.0f ? far : 0.0f;
}

// The weighted components of the pixels in two windows, which are counted from a corner, and the sum of their weights.
template <Format FORMAT, Taps TAPS>
__device__ __forceinline__ float4 sum_of(const u8* frame, const Lane& lane, const Window& across, const Window& down, int corner_x,
                                         int corner_y, bool transposed) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    auto add = [&](float3 stored, float weight) {
        sum.x += stored.x * weight;
        sum.y += stored.y * weight;
        sum.z += stored.z * weight;
        sum.w += weight;
    };
    int rows = down.last - down.first + 1, columns = across.last - across.first + 1;
    // The compiler knows the bounds to be minima and maxima of several values, and would count by a chain of them. Of such a chain driver
    // 580.159 makes one column too many on an H200: the numbers are hidden from it.
    asm("" : "+r"(rows), "+r"(columns));
    if (FORMAT == NV12 || FORMAT == I420) {
        for (int row = 0; row < rows; row++) {
            const int v = down.first + row;
            const float weight_v = weight_of<TAPS>(down, v);
            const u32 line = static_cast<u32>(corner_y + v);
            // Nine loads do not wait for each other as it is.
#pragma unroll 1
            for (int column = 0; column < columns; column++) {
                const int u = across.first + column;
                const u32 place = static_cast<u32>(corner_x + u);
                const u32 x = transposed ? line : place, y = transposed ? place : line;
                const float2 chroma = chroma_of<FORMAT>(frame, lane, x, y);
                const float luma = byte_at(frame + static_cast<size_t>(y) * lane.pitch + x);
                add(make_float3(luma, chroma.x, chroma.y), weight_v * weight_of<TAPS>(across, u));
            }
        }
        return sum;
    }
    constexpr int PIXEL = FORMAT == ONE ? 1 : FORMAT == THREE ? 3 : 4;
    const int pitch = static_cast<int>(lane.pitch);
    const int step_u = transposed ? pitch : PIXEL, step_v = transposed ? PIXEL : pitch;
    const u8* corner = frame + static_cast<size_t>(transposed ? corner_x : corner_y) * lane.pitch +
                       static_cast<size_t>(transposed ? corner_y : corner_x) * PIXEL;
    for (int row = 0; row < rows; row++) {
        const int v = down.first + row;
        const float weight_v = weight_of<TAPS>(down, v);
        const u8* line = corner + static_cast<long long>(v) * step_v;
#pragma unroll TAPS == NEAREST ? 1 : 4
        for (int column = 0; column < columns; column++) {
            const int u = across.first + column;
            const float3 stored = components_at<FORMAT>(line + static_cast<long long>(u) * step_u, lane.whole_words);
            add(stored, weight_v * weight_of<TAPS>(across, u));
        }
    }
    return sum;
}

// Writes one element, as wide as it is.
__device__ __forceinline__ void store(void* tensor, size_t element, float value, const Lane& lane) {
    if (lane.dtype == 0) {
        static_cast<float*>(tensor)[element] = value;
    } else if (lane.dtype == 1) {
        u16 bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        static_cast<u16*>(tensor)[element] = bits;
    } else if (lane.dtype == 2) {
        const u32 bits = __float_as_uint(value);
        static_cast<u16*>(tensor)[element] = static_cast<u16>((bits + ((bits >> 16) & 1u) + 0x7fffu) >> 16);
    } else {
        const int whole = __float2int_rn(fminf(fmaxf(value, lane.least), lane.most)) + lane.zero_point;
        static_cast<u8*>(tensor)[element] = static_cast<u8>(whole);
    }
}

template <Format FORMAT, Taps TAPS>
__device__ __forceinline__ void pipeline(const u8* __restrict__ pixels, const Record* __restrict__ records,
                                         void* __restrict__ tensor, const Lane& lane) {
    const u32 sample = blockIdx.x / lane.groups;
    const u32 index = (blockIdx.x - sample * lane.groups) * GROUP + threadIdx.x;
    const u32 area = lane.width * lane.height;
    if (index >= area) {
        return;
    }
    const Record& record = records[sample];
    const u32 code = static_cast<u32>(record.code);
    const bool transposed = code & 4;
    const int resized_x = static_cast<int>(record.resized[0]), resized_y = static_cast<int>(record.resized[1]);
    const u32 row = index / lane.width;
    int x = static_cast<int>(index - row * lane.width) - static_cast<int>(record.offset[0]);
    int y = static_cast<int>(row) - static_cast<int>(record.offset[1]);
    float values[3] = {lane.fill[0], lane.fill[1], lane.fill[2]};
    if (x >= 0 && y >= 0 && x < resized_x && y < resized_y) {
        x = code & 1 ? resized_x - 1 - x : x;
        y = code & 2 ? resized_y - 1 - y : y;
        const int swap = transposed ? 1 : 0;
        Window across = window_of<TAPS>(x, static_cast<int>(record.source[2 + swap]), resized_x, record.half_step[0],
                                              lane.antialias);
        Window down = window_of<TAPS>(y, static_cast<int>(record.source[3 - swap]), resized_y, record.half_step[1],
                                            lane.antialias);
        // A record that is right changes nothing here; no other one is to read outside of the frame.
        const int last_x = static_cast<int>(transposed ? lane.frame_height : lane.frame_width) - 1;
        const int last_y = static_cast<int>(transposed ? lane.frame_width : lane.frame_height) - 1;
        const int corner_x = min(max(across.base + static_cast<int>(record.source[swap]), 0), last_x);
        const int corner_y = min(max(down.base + static_cast<int>(record.source[1 - swap]), 0), last_y);
        across.first = max(across.first, -corner_x);
        across.last = min(across.last, last_x - corner_x);
        down.first = max(down.first, -corner_y);
        down.last = min(down.last, last_y - corner_y);
        const u8* frame = pixels + sample * lane.sample_bytes;
        const float4 sum = sum_of<FORMAT, TAPS>(frame, lane, across, down, corner_x, corner_y, transposed);
        const float a = sum.x / sum.w, b = sum.y / sum.w, c = sum.z / sum.w;
#pragma unroll
        for (int channel = 0; channel < 3; channel++) {
            const float* color = record.color[channel];
            const float mixed = lane.keeps_values ? a : color[0] * a + color[1] * b + color[2] * c + color[3];
            values[channel] = fminf(fmaxf(mixed, 0.0f), 255.0f) * lane.scale[channel] + lane.bias[channel];
        }
    }
    const size_t first = static_cast<size_t>(sample) * lane.channels * area;
#pragma unroll
    for (u32 channel = 0; channel < 3; channel++) {
        if (channel < lane.channels) {
            const u32 within = lane.planar ? channel * area + index : index * lane.channels + channel;
            store(tensor, first + within, values[channel], lane);
        }
    }
}

#define KERNEL(name, FORMAT, TAPS)                                                                                  \
    extern "C" __global__ void __launch_bounds__(GROUP) name(const u8* pixels, const Record* records, void* tensor, \
                                                             const Lane lane) {                                     \
        pipeline<FORMAT, TAPS>(pixels, records, tensor, lane);                                                      \
    }
#define KERNELS(name, FORMAT)                  \
    KERNEL(name##_nearest, FORMAT, NEAREST)    \
    KERNEL(name##_bilinear, FORMAT, BILINEAR)  \
    KERNEL(name##_bicubic, FORMAT, BICUBIC)

KERNELS(one, ONE)
KERNELS(three, THREE)
KERNELS(four, FOUR)
KERNELS(nv12, NV12)
KERNELS(i420, I420)
