// u8 images in HWC order become normalised tensors: x * scale + bias, as f32 or rounded to f16.
//
// A thread writes vectors of 16 bytes: scalar stores reach a fraction of a large GPU's memory bandwidth. The source is one
// batch, sample after sample, in a buffer that ends at a multiple of 16 bytes, as the tensor's does: the vector that holds the
// last element may also write padding. Indices are 32 bits wide; the caller refuses larger batches.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;

struct Affine {
    float scale[4];
    float bias[4];
};

constexpr u32 GROUP = 256;

__device__ __forceinline__ u32 linear() {
    return blockIdx.x * GROUP + threadIdx.x;
}

// To nearest, ties to even, with subnormals, overflowing to infinity.
__device__ __forceinline__ u32 half_bits(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ u32 half_pair(float low, float high) {
    return half_bits(low) | (half_bits(high) << 16);
}

__device__ __forceinline__ float byte_of(u32 word, int place) {
    return static_cast<float>((word >> (8 * place)) & 255u);
}

__device__ __forceinline__ float4 as_float4(const float v[4]) {
    return make_float4(v[0], v[1], v[2], v[3]);
}

__device__ __forceinline__ uint4 as_halves(const float low[4], const float high[4]) {
    return make_uint4(half_pair(low[0], low[1]), half_pair(low[2], low[3]), half_pair(high[0], high[1]),
                      half_pair(high[2], high[3]));
}

// NCHW of 3 or 4 channels, where a plane is a whole number of vectors: 4 pixels of f32 or 8 of f16 a thread, which are a
// whole number of source words and one vector of each plane.

// The values of four pixels by channel, from C words.
template <int C>
__device__ __forceinline__ void quad(const u32* __restrict__ from, const Affine& affine, float out[C][4]) {
    u32 words[C];
#pragma unroll
    for (int i = 0; i < C; i++) {
        words[i] = from[i];
    }
#pragma unroll
    for (int pixel = 0; pixel < 4; pixel++) {
#pragma unroll
        for (int c = 0; c < C; c++) {
            const int at = pixel * C + c;
            out[c][pixel] = byte_of(words[at >> 2], at & 3) * affine.scale[c] + affine.bias[c];
        }
    }
}

// `vectors` is the number in one plane, `total` the number in one channel of all samples.
template <int C, bool HALF>
__device__ __forceinline__ void planar(const u32* __restrict__ pixels, uint4* __restrict__ tensor, u32 vectors, u32 total,
                                       const Affine& affine) {
    const u32 index = linear();
    if (index >= total) {
        return;
    }
    const u32 sample = index / vectors;
    const u32 place = sample * (C - 1) * vectors + index;
    float low[C][4];
    if (HALF) {
        float high[C][4];
        quad<C>(pixels + 2 * C * static_cast<size_t>(index), affine, low);
        quad<C>(pixels + 2 * C * static_cast<size_t>(index) + C, affine, high);
#pragma unroll
        for (int c = 0; c < C; c++) {
            tensor[place + c * vectors] = as_halves(low[c], high[c]);
        }
    } else {
        quad<C>(pixels + C * static_cast<size_t>(index), affine, low);
#pragma unroll
        for (int c = 0; c < C; c++) {
            reinterpret_cast<float4*>(tensor)[place + c * vectors] = as_float4(low[c]);
        }
    }
}

// NHWC, and NCHW of one channel, where both are the same: elements stay in order.

// The four values of word number `index` of the batch.
template <int C>
__device__ __forceinline__ void in_order(u32 word, u32 index, const Affine& affine, float out[4]) {
    // Four bytes a word and three channels: each word starts one channel later.
    const u32 start = C == 3 ? index % 3 : 0;
#pragma unroll
    for (int at = 0; at < 4; at++) {
        float scale = affine.scale[C == 4 ? at : 0];
        float bias = affine.bias[C == 4 ? at : 0];
        if (C == 3) {
            const int first = at % 3, second = (at + 1) % 3, third = (at + 2) % 3;
            scale = start == 0 ? affine.scale[first] : start == 1 ? affine.scale[second] : affine.scale[third];
            bias = start == 0 ? affine.bias[first] : start == 1 ? affine.bias[second] : affine.bias[third];
        }
        out[at] = byte_of(word, at) * scale + bias;
    }
}

template <int C, bool HALF>
__device__ __forceinline__ void interleaved(const u32* __restrict__ pixels, uint4* __restrict__ tensor, u32 total,
                                            const Affine& affine) {
    const u32 index = linear();
    if (index >= total) {
        return;
    }
    float low[4];
    if (HALF) {
        float high[4];
        const uint2 words = reinterpret_cast<const uint2*>(pixels)[index];
        in_order<C>(words.x, 2 * index, affine, low);
        in_order<C>(words.y, 2 * index + 1, affine, high);
        tensor[index] = as_halves(low, high);
    } else {
        in_order<C>(pixels[index], index, affine, low);
        reinterpret_cast<float4*>(tensor)[index] = as_float4(low);
    }
}

// NCHW of any plane: a vector may span planes and samples, so each element finds its own byte.

template <int C>
__device__ __forceinline__ float element(const u8* __restrict__ pixels, u32 at, u32 plane, u32 elements, const Affine& affine) {
    if (at >= elements) {
        return 0.0f;
    }
    const u32 image = C * plane;
    const u32 sample = at / image;
    const u32 within = at - sample * image;
    const u32 channel = within / plane;
    const u32 pixel = within - channel * plane;
    float scale = affine.scale[0], bias = affine.bias[0];
#pragma unroll
    for (int c = 1; c < C; c++) {
        scale = channel == c ? affine.scale[c] : scale;
        bias = channel == c ? affine.bias[c] : bias;
    }
    return static_cast<float>(pixels[static_cast<size_t>(sample) * image + pixel * C + channel]) * scale + bias;
}

template <int C, bool HALF>
__device__ __forceinline__ void planar_any(const u8* __restrict__ pixels, uint4* __restrict__ tensor, u32 plane, u32 elements,
                                           const Affine& affine) {
    constexpr u32 EACH = HALF ? 8 : 4;
    const u32 index = linear();
    if (index >= (elements - 1) / EACH + 1) {
        return;
    }
    float values[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        values[i] = element<C>(pixels, index * EACH + i, plane, elements, affine);
    }
    if (HALF) {
        tensor[index] = as_halves(values, values + 4 % EACH);
    } else {
        reinterpret_cast<float4*>(tensor)[index] = as_float4(values);
    }
}

// All take (source, tensor, a, b, affine): for `planar` the vectors in a plane and in all, for `planar_any` the pixels of a
// plane and the elements in all, for `interleaved` nothing and the vectors in all.
#define KERNEL(name, call)                                                                                              \
    extern "C" __global__ void __launch_bounds__(GROUP)                                                                 \
        name(const u8* __restrict__ source, uint4* __restrict__ tensor, u32 a, u32 b, Affine affine) {                  \
        [[maybe_unused]] const u32* words = reinterpret_cast<const u32*>(source);                                       \
        call;                                                                                                           \
    }

KERNEL(interleaved_1_f32, (interleaved<1, false>(words, tensor, b, affine)))
KERNEL(interleaved_3_f32, (interleaved<3, false>(words, tensor, b, affine)))
KERNEL(interleaved_4_f32, (interleaved<4, false>(words, tensor, b, affine)))
KERNEL(interleaved_1_f16, (interleaved<1, true>(words, tensor, b, affine)))
KERNEL(interleaved_3_f16, (interleaved<3, true>(words, tensor, b, affine)))
KERNEL(interleaved_4_f16, (interleaved<4, true>(words, tensor, b, affine)))
KERNEL(planar_3_f32, (planar<3, false>(words, tensor, a, b, affine)))
KERNEL(planar_4_f32, (planar<4, false>(words, tensor, a, b, affine)))
KERNEL(planar_3_f16, (planar<3, true>(words, tensor, a, b, affine)))
KERNEL(planar_4_f16, (planar<4, true>(words, tensor, a, b, affine)))
KERNEL(planar_any_3_f32, (planar_any<3, false>(source, tensor, a, b, affine)))
KERNEL(planar_any_4_f32, (planar_any<4, false>(source, tensor, a, b, affine)))
KERNEL(planar_any_3_f16, (planar_any<3, true>(source, tensor, a, b, affine)))
KERNEL(planar_any_4_f16, (planar_any<4, true>(source, tensor, a, b, affine)))
