// The checksum of src/preprocess/fingerprint.rs for each sample: two words a sample, which were zero before. And a kernel that
// only copies, the ceiling that the others are compared with.
//
// A block sums 256 * steps words of one sample. The samples follow each other at `source`, or start at `offsets` from it.

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 GROUP = 256;

__device__ __forceinline__ u32 mix32(u32 x) {
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return x ^ (x >> 16);
}

// Up to four bytes that may start at any address; zeros after the end. Never reads a word that holds none of them.
__device__ __forceinline__ u32 word_at(const u8* at, u64 rest) {
    const u32 shift = static_cast<u32>(reinterpret_cast<u64>(at) & 3u) * 8;
    const u32* words = reinterpret_cast<const u32*>(reinterpret_cast<u64>(at) & ~3ull);
    const u32 bytes = rest < 4 ? static_cast<u32>(rest) : 4u;
    u32 word = words[0] >> shift;
    if (shift + 8 * bytes > 32) {
        word |= words[1] << (32 - shift);
    }
    return bytes < 4 ? word & ((1u << (8 * bytes)) - 1u) : word;
}

__device__ __forceinline__ u32 warp_sum(u32 value) {
#pragma unroll
    for (int width = 16; width > 0; width /= 2) {
        value += __shfl_down_sync(0xFFFFFFFFu, value, width);
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(GROUP)
    fingerprint(const u8* source, const u64* offsets, u64 sample_bytes, u32 steps, u32 groups, u32* sums) {
    const u32 sample = blockIdx.x / groups;
    const u32 group = blockIdx.x - sample * groups;
    const u8* bytes = source + (offsets ? offsets[sample] : sample * sample_bytes);
    u32 first = 0, second = 0;
    for (u32 turn = 0; turn < steps; turn++) {
        // Neighbours in a block read neighbouring words.
        const u64 position = (static_cast<u64>(group) * steps + turn) * GROUP + threadIdx.x;
        if (4 * position < sample_bytes) {
            const u32 word = word_at(bytes + 4 * position, sample_bytes - 4 * position);
            first += mix32(word ^ mix32(static_cast<u32>(position) + 0x9E3779B9u));
            second += mix32(word ^ mix32(static_cast<u32>(position) + 0x85EBCA6Bu));
        }
    }
    first = warp_sum(first);
    second = warp_sum(second);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[2 * sample], first);
        atomicAdd(&sums[2 * sample + 1], second);
    }
}

extern "C" __global__ void __launch_bounds__(GROUP) copy(const uint4* __restrict__ from, uint4* __restrict__ to, u64 vectors) {
    const u64 first = static_cast<u64>(blockIdx.x) * (4 * GROUP) + threadIdx.x;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        const u64 at = first + i * GROUP;
        if (at < vectors) {
            to[at] = from[at];
        }
    }
}
