// Gathers samples out of page-locked host memory and normalises them in one go: the only copy of a sample is the one over the
// bus, and no CPU touches it.
//
// A block takes a tile of one image's pixels: it reads the tile's bytes as aligned vectors of 16, so that many reads of the bus
// are on their way at once and each is whole, keeps them in shared memory, and writes the tensor from there. A vector may
// begin before the sample and end behind it, but never holds none of its bytes, so it stays within the memory's pages.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct Affine {
    float scale[4];
    float bias[4];
};

constexpr u32 GROUP = 256;
constexpr u32 TILE = 4096; // pixels

__device__ __forceinline__ u32 half_bits(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

template <bool HALF>
__device__ __forceinline__ void store_one(void* tensor, size_t at, float value) {
    if (HALF) {
        static_cast<u16*>(tensor)[at] = static_cast<u16>(half_bits(value));
    } else {
        static_cast<float*>(tensor)[at] = value;
    }
}

// Four values at a multiple of four elements.
template <bool HALF>
__device__ __forceinline__ void store_four(void* tensor, size_t at, const float v[4]) {
    if (HALF) {
        const uint2 words = make_uint2(half_bits(v[0]) | (half_bits(v[1]) << 16), half_bits(v[2]) | (half_bits(v[3]) << 16));
        *reinterpret_cast<uint2*>(static_cast<u16*>(tensor) + at) = words;
    } else {
        *reinterpret_cast<float4*>(static_cast<float*>(tensor) + at) = make_float4(v[0], v[1], v[2], v[3]);
    }
}

// Brings `bytes` bytes at `from` to shared memory; returns where the first one is.
template <int C>
__device__ __forceinline__ const u8* fetch(const u8* from, u32 bytes, uint4* tile) {
    const u32 head = static_cast<u32>(reinterpret_cast<u64>(from) & 15u);
    const uint4* vectors = reinterpret_cast<const uint4*>(from - head);
    const u32 count = (head + bytes + 15) / 16;
    // All loads are issued before the first is stored.
    uint4 held[C + 1];
#pragma unroll
    for (u32 i = 0; i <= C; i++) {
        const u32 at = threadIdx.x + i * GROUP;
        if (at < count) {
            held[i] = vectors[at];
        }
    }
#pragma unroll
    for (u32 i = 0; i <= C; i++) {
        const u32 at = threadIdx.x + i * GROUP;
        if (at < count) {
            tile[at] = held[i];
        }
    }
    __syncthreads();
    return reinterpret_cast<const u8*>(tile) + head;
}

// `tiles` is the number of tiles in one image, `offsets` are the samples' first bytes within `memory`.
template <int C, bool HALF, bool PLANAR>
__device__ __forceinline__ void gather(const u8* memory, const u64* offsets, void* tensor, u32 plane, u32 tiles,
                                       const Affine& affine) {
    __shared__ uint4 tile[TILE * C / 16 + 1];
    const u32 sample = blockIdx.x / tiles;
    const u32 first = (blockIdx.x - sample * tiles) * TILE;
    const u32 count = min(TILE, plane - first);
    const u8* bytes = fetch<C>(memory + offsets[sample] + static_cast<u64>(first) * C, count * C, tile);
    const size_t image = static_cast<size_t>(sample) * plane * C;
    const bool whole = plane % 4 == 0;
    for (u32 at = threadIdx.x * 4; at < count; at += GROUP * 4) {
        float values[C][4];
#pragma unroll
        for (u32 pixel = 0; pixel < 4; pixel++) {
#pragma unroll
            for (u32 c = 0; c < C; c++) {
                const u32 within = min(at + pixel, count - 1) * C + c;
                values[c][pixel] = static_cast<float>(bytes[within]) * affine.scale[c] + affine.bias[c];
            }
        }
        const u32 pixel = first + at;
        if (whole && PLANAR) {
#pragma unroll
            for (u32 c = 0; c < C; c++) {
                store_four<HALF>(tensor, image + static_cast<size_t>(c) * plane + pixel, values[c]);
            }
        } else if (whole) {
#pragma unroll
            for (u32 i = 0; i < C; i++) {
                const float row[4] = {values[(4 * i) % C][(4 * i) / C], values[(4 * i + 1) % C][(4 * i + 1) / C],
                                      values[(4 * i + 2) % C][(4 * i + 2) / C], values[(4 * i + 3) % C][(4 * i + 3) / C]};
                store_four<HALF>(tensor, image + static_cast<size_t>(pixel) * C + 4 * i, row);
            }
        } else {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                if (at + i < count) {
#pragma unroll
                    for (u32 c = 0; c < C; c++) {
                        const size_t place =
                            PLANAR ? static_cast<size_t>(c) * plane + pixel + i : static_cast<size_t>(pixel + i) * C + c;
                        store_one<HALF>(tensor, image + place, values[c][i]);
                    }
                }
            }
        }
    }
}

#define KERNEL(name, C, HALF, PLANAR)                                                                                   \
    extern "C" __global__ void __launch_bounds__(GROUP)                                                                 \
        name(const u8* memory, const u64* offsets, void* tensor, u32 plane, u32 tiles, Affine affine) {                 \
        gather<C, HALF, PLANAR>(memory, offsets, tensor, plane, tiles, affine);                                         \
    }

KERNEL(gather_interleaved_1_f32, 1, false, false)
KERNEL(gather_interleaved_3_f32, 3, false, false)
KERNEL(gather_interleaved_4_f32, 4, false, false)
KERNEL(gather_interleaved_1_f16, 1, true, false)
KERNEL(gather_interleaved_3_f16, 3, true, false)
KERNEL(gather_interleaved_4_f16, 4, true, false)
KERNEL(gather_planar_3_f32, 3, false, true)
KERNEL(gather_planar_4_f32, 4, false, true)
KERNEL(gather_planar_3_f16, 3, true, true)
KERNEL(gather_planar_4_f16, 4, true, true)
