// Frames become a network's input: each pixel of the tensor is a weighted sum of the frame's pixels, as its sample's record says, and
// then one linear map of its components, a scale and a sum. The same as pipeline.wgsl, which says more.
//
// A block makes a tile of one sample's tensor. Which pixels of the frame its columns and rows are made of, and with what weights, is
// computed once for each of them and kept in shared memory. Threads then go down a column each, so that neighbours in a row lie in one
// warp and single elements are stored without gaps. Where there are too few pixels for a device, several threads share each.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 GROUP = 256;
constexpr u32 COLUMNS = 32; // of a tile, and no fewer than it may have rows
constexpr u32 LINES = GROUP / COLUMNS;
constexpr int MOST_TAPS = 32; // of which weights are kept

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
    u32 tiles; // of a sample
    u32 tiles_across;
    u32 tile_rows; // 32 or 8; or 2, of which four threads share each pixel
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

// At a distance from the filter's centre, in units of its own width.
template <Taps TAPS>
__device__ __forceinline__ float weight_of(float distance) {
    if (TAPS == NEAREST) {
        return 1.0f;
    }
    const float d = fabsf(distance);
    if (TAPS == BILINEAR) {
        return fmaxf(1.0f - d, 0.0f);
    }
    const float near = (1.5f * d - 2.5f) * d * d + 1.0f;
    const float far = ((-0.5f * d + 2.5f) * d - 4.0f) * d + 2.0f;
    return d < 1.0f ? near : d < 2.0f ? far : 0.0f;
}

// The pixels of the frame's axis that a column or a row of the tile is made of.
struct Span {
    u32 begin;
    int count; // none where it is filled
    float first; // the first one's distance from the filter's centre
    float shrink;
    float scale; // one over the sum of the weights
};

// What a tile's threads share.
struct Tile {
    Span across[COLUMNS];
    Span down[COLUMNS];
    // Divided by their sum, and at least two of each span, the second of which may be zero.
    float weights_across[MOST_TAPS][COLUMNS];
    float weights_down[MOST_TAPS][COLUMNS];
    float color[3][4];
    float4 parts[GROUP]; // of pixels that threads share
};

// The most pixels that an axis of a sample has for one of the tensor's. Rounding may add one where the filter is widened.
template <Taps TAPS>
__device__ __forceinline__ int most_taps(int length, int resized, float half_step, bool antialias) {
    if (TAPS == NEAREST) {
        return 1;
    }
    const float reach = TAPS == BILINEAR ? 2.0f : 4.0f;
    if (!antialias || length <= resized) {
        return static_cast<int>(reach);
    }
    return __float2int_ru(reach * (static_cast<float>(2 * length) * half_step)) + 1;
}

// The span of the tensor's pixel at `at` on this axis, and its weights, each COLUMNS floats behind the one before.
template <Taps TAPS>
__device__ __forceinline__ Span span_of(int at, int axis, const Record& record, const Lane& lane, float* weights) {
    const u32 code = static_cast<u32>(record.code);
    const int stored = code & 4 ? 1 - axis : axis;
    const int resized = static_cast<int>(record.resized[axis]);
    const int last = static_cast<int>(stored ? lane.frame_height : lane.frame_width) - 1;
    Span span = {0, 0, 0.0f, 1.0f, 1.0f};
    at -= static_cast<int>(record.offset[axis]);
    if (at < 0 || at >= resized) {
        return span;
    }
    at = (code >> axis) & 1 ? resized - 1 - at : at;
    const Window window = window_of<TAPS>(at, static_cast<int>(record.source[2 + stored]), resized, record.half_step[axis], lane.antialias);
    // A record that is right changes nothing here; no other one is to read outside of the frame.
    const int corner = min(max(window.base + static_cast<int>(record.source[stored]), 0), last);
    const int first = max(window.first, -corner);
    const int end = min(window.last, last - corner);
    int count = end >= first ? end - first + 1 : 0;
    // The compiler knows the number to be a minimum of maxima, and would count by a chain of them. Of such a chain driver 580.159 makes
    // one pixel too many on an H200: the number is hidden from it.
    asm("" : "+r"(count));
    span.begin = static_cast<u32>(corner + first);
    span.count = count;
    span.first = (static_cast<float>(first) + 0.5f - window.part) * window.shrink;
    span.shrink = window.shrink;
    float sum = 0.0f;
#pragma unroll 1
    for (int tap = 0; tap < count; tap++) {
        const float weight = weight_of<TAPS>(span.first + static_cast<float>(tap) * span.shrink);
        sum += weight;
        if (tap < MOST_TAPS) {
            weights[tap * COLUMNS] = weight;
        }
    }
    span.scale = 1.0f / sum;
#pragma unroll 1
    for (int tap = 0; tap < min(count, MOST_TAPS); tap++) {
        weights[tap * COLUMNS] *= span.scale;
    }
    if (count < 2) {
        weights[COLUMNS] = 0.0f;
    }
    return span;
}

// A sample's frame, whose steps lead to the next pixel in the tensor's x and y.
struct Frame {
    const u8* bytes;
    u32 step_x;
    u32 step_y;
    bool transposed;
};

// The components of a pixel, as they are stored, `x` and `y` along the tensor's axes.
template <Format FORMAT>
__device__ __forceinline__ float3 stored_at(const Frame& frame, const Lane& lane, u32 x, u32 y) {
    if (FORMAT == NV12 || FORMAT == I420) {
        const u32 column = frame.transposed ? y : x, row = frame.transposed ? x : y;
        const float2 chroma = chroma_of<FORMAT>(frame.bytes, lane, column, row);
        return make_float3(byte_at(frame.bytes + static_cast<size_t>(row) * lane.pitch + column), chroma.x, chroma.y);
    }
    return components_at<FORMAT>(frame.bytes + (y * frame.step_y + x * frame.step_x), lane.whole_words);
}

__device__ __forceinline__ void add(float3& sum, float3 stored, float weight) {
    sum.x += stored.x * weight;
    sum.y += stored.y * weight;
    sum.z += stored.z * weight;
}

// The mean of at most two by two pixels, whose loads do not wait for each other.
template <Format FORMAT, Taps TAPS>
__device__ __forceinline__ float3 mean_of_few(const Frame& frame, const Lane& lane, const Tile& tile, u32 column, u32 row) {
    const Span &across = tile.across[column], &down = tile.down[row];
    if (TAPS == NEAREST) {
        return stored_at<FORMAT>(frame, lane, across.begin, down.begin);
    }
    const u32 x = across.begin, next_x = x + (across.count > 1 ? 1 : 0);
    const u32 y = down.begin, next_y = y + (down.count > 1 ? 1 : 0);
    const float3 a = stored_at<FORMAT>(frame, lane, x, y), b = stored_at<FORMAT>(frame, lane, next_x, y);
    const float3 c = stored_at<FORMAT>(frame, lane, x, next_y), d = stored_at<FORMAT>(frame, lane, next_x, next_y);
    const float left = tile.weights_across[0][column], right = tile.weights_across[1][column];
    float3 above = make_float3(0.0f, 0.0f, 0.0f), below = above, mean = above;
    add(above, a, left);
    add(above, b, right);
    add(below, c, left);
    add(below, d, right);
    add(mean, above, tile.weights_down[0][row]);
    add(mean, below, tile.weights_down[1][row]);
    return mean;
}

// Of the rows of a pixel's window every `threads`-th, from `part` on, weighted: all such parts add up to the mean.
template <Format FORMAT, Taps TAPS, bool KEPT>
__device__ __forceinline__ float3 mean_of(const Frame& frame, const Lane& lane, const Tile& tile, u32 column, u32 row, int part,
                                          int threads) {
    const Span across = tile.across[column], down = tile.down[row];
    auto weight_at = [&](const Span& span, const float (&weights)[MOST_TAPS][COLUMNS], u32 place, int tap) {
        return KEPT ? weights[tap][place] : weight_of<TAPS>(span.first + static_cast<float>(tap) * span.shrink) * span.scale;
    };
    float3 mean = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int v = part; v < down.count; v += threads) {
        const u32 y = down.begin + static_cast<u32>(v);
        float3 line = make_float3(0.0f, 0.0f, 0.0f);
        // Loads that do not wait for each other; of frames with chroma one pixel has nine.
#pragma unroll FORMAT == NV12 || FORMAT == I420 || !KEPT ? 1 : 4
        for (int u = 0; u < across.count; u++) {
            add(line, stored_at<FORMAT>(frame, lane, across.begin + static_cast<u32>(u), y),
                weight_at(across, tile.weights_across, column, u));
        }
        add(mean, line, weight_at(down, tile.weights_down, row, v));
    }
    return mean;
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

// Fills what the tile's threads share: a warp the columns, another the rows, a third the colours.
template <Taps TAPS>
__device__ __forceinline__ void measure(Tile& tile, const Record& record, const Lane& lane, u32 first_x, u32 first_y) {
    const u32 lane_of_warp = threadIdx.x % COLUMNS, warp = threadIdx.x / COLUMNS;
    if (warp == 0 || (warp == 1 && lane_of_warp < lane.tile_rows)) {
        Span* spans = warp == 0 ? tile.across : tile.down;
        float* weights = warp == 0 ? tile.weights_across[0] : tile.weights_down[0];
        const int at = static_cast<int>((warp == 0 ? first_x : first_y) + lane_of_warp);
        spans[lane_of_warp] = span_of<TAPS>(at, static_cast<int>(warp), record, lane, weights + lane_of_warp);
    } else if (warp == 2 && lane_of_warp < 12) {
        tile.color[lane_of_warp / 4][lane_of_warp % 4] = record.color[lane_of_warp / 4][lane_of_warp % 4];
    }
}

// A pixel's channels, from the mean of its components.
__device__ __forceinline__ void write(void* tensor, const Lane& lane, const Tile& tile, u32 sample, u32 x, u32 y, bool inside,
                                      float3 mean) {
    const u32 area = lane.width * lane.height, index = y * lane.width + x;
    const size_t first = static_cast<size_t>(sample) * lane.channels * area;
#pragma unroll
    for (u32 channel = 0; channel < 3; channel++) {
        if (channel < lane.channels) {
            const float* color = tile.color[channel];
            const float mixed = lane.keeps_values ? mean.x : color[0] * mean.x + color[1] * mean.y + color[2] * mean.z + color[3];
            const float value = fminf(fmaxf(mixed, 0.0f), 255.0f) * lane.scale[channel] + lane.bias[channel];
            const u32 within = lane.planar ? channel * area + index : index * lane.channels + channel;
            store(tensor, first + within, inside ? value : lane.fill[channel], lane);
        }
    }
}

template <Format FORMAT, Taps TAPS>
__device__ __forceinline__ void pipeline(const u8* __restrict__ pixels, const Record* __restrict__ records,
                                         void* __restrict__ tensor, const Lane& lane) {
    __shared__ Tile tile;
    const u32 sample = blockIdx.x / lane.tiles;
    const u32 place = blockIdx.x - sample * lane.tiles, tile_y = place / lane.tiles_across;
    const u32 first_x = (place - tile_y * lane.tiles_across) * COLUMNS, first_y = tile_y * lane.tile_rows;
    const Record& record = records[sample];
    measure<TAPS>(tile, record, lane, first_x, first_y);
    const bool transposed = static_cast<u32>(record.code) & 4;
    const int swap = transposed ? 1 : 0;
    const int most_x = most_taps<TAPS>(static_cast<int>(record.source[2 + swap]), static_cast<int>(record.resized[0]),
                                       record.half_step[0], lane.antialias);
    const int most_y = most_taps<TAPS>(static_cast<int>(record.source[3 - swap]), static_cast<int>(record.resized[1]),
                                       record.half_step[1], lane.antialias);
    const int most = max(most_x, most_y);
    constexpr bool CHROMA = FORMAT == NV12 || FORMAT == I420;
    constexpr u32 PIXEL = FORMAT == ONE ? 1 : FORMAT == THREE ? 3 : 4;
    const Frame frame = {pixels + sample * lane.sample_bytes, transposed ? lane.pitch : PIXEL, transposed ? PIXEL : lane.pitch, transposed};
    const u32 column = threadIdx.x % COLUMNS, line = threadIdx.x / COLUMNS;
    // Threads of a pixel.
    const u32 threads = lane.tile_rows < LINES ? LINES / lane.tile_rows : 1;
    const u32 part = line % threads;
    __syncthreads();
#pragma unroll 1
    for (u32 row = line / threads; row < lane.tile_rows; row += LINES / threads) {
        const bool inside = tile.across[column].count > 0 && tile.down[row].count > 0;
        float3 mean = make_float3(0.0f, 0.0f, 0.0f);
        if (inside) {
            if (TAPS == NEAREST || (!CHROMA && most <= 2)) {
                mean = part == 0 ? mean_of_few<FORMAT, TAPS>(frame, lane, tile, column, row) : mean;
            } else if (most <= MOST_TAPS) {
                mean = mean_of<FORMAT, TAPS, true>(frame, lane, tile, column, row, static_cast<int>(part), static_cast<int>(threads));
            } else {
                mean = mean_of<FORMAT, TAPS, false>(frame, lane, tile, column, row, static_cast<int>(part), static_cast<int>(threads));
            }
        }
        if (threads > 1) {
            // There is one row a thread: all come here once.
            tile.parts[threadIdx.x] = make_float4(mean.x, mean.y, mean.z, 0.0f);
            __syncthreads();
#pragma unroll 1
            for (u32 other = 1; part == 0 && other < threads; other++) {
                const float4 sum = tile.parts[threadIdx.x + other * COLUMNS];
                add(mean, make_float3(sum.x, sum.y, sum.z), 1.0f);
            }
        }
        const u32 x = first_x + column, y = first_y + row;
        if (part == 0 && x < lane.width && y < lane.height) {
            write(tensor, lane, tile, sample, x, y, inside, mean);
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
