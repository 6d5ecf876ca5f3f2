// What a measured consumer does with a batch: fixed work of one warp, and two looks at the tensor, before the work and after it. As
// consume.wgsl.
//
// The looks tell whether the tensor was there when the work began, and whether it was left alone until the work ended. What a stream
// runs comes one after the other, so that the counts need no order of their own.

using u32 = unsigned int;

constexpr u32 THREADS = 32;
constexpr u32 LOOKS = 16;

// Volatile, so that the second look is not served from what the first one saw. The sum of all threads, in every one of them.
__device__ __forceinline__ u32 look(const volatile u32* tensor, u32 stride) {
    u32 sum = 0;
    for (u32 i = 0; i < LOOKS; ++i) {
        const u32 at = threadIdx.x + THREADS * i;
        sum += tensor[static_cast<unsigned long long>(at) * stride] * (2 * at + 1);
    }
    for (u32 other = THREADS / 2; other > 0; other /= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, other);
    }
    return sum;
}

// A multiplication and what keeps compilers from making one of many; the lowest bit changes.
__device__ __forceinline__ u32 step(u32 x) {
    const u32 next = x * 1664525u + 1013904223u;
    return next ^ ((next >> 16) << 1);
}

// `seen` is the number of batches so far, how many of them changed, and the sums of the first `keep` ones.
extern "C" __global__ void consume(const u32* tensor, u32* seen, u32 stride, u32 iterations, u32 keep) {
    if (threadIdx.x >= THREADS) {
        return;
    }
    const u32 before = look(tensor, stride);
    // Even, and it stays even: sixteen steps change the lowest bit sixteen times.
    u32 x = (before + threadIdx.x) << 1;
    for (u32 i = 0; i < iterations; ++i) {
#pragma unroll
        for (u32 turn = 0; turn < 16; ++turn) {
            x = step(x);
        }
    }
    // The second look has to wait for the work: where it looks depends on it.
    const u32 after = look(tensor + (x & 1u), stride);
    if (threadIdx.x == 0) {
        const u32 number = seen[0];
        seen[1] += before != after;
        if (number < keep) {
            seen[2 + number] = before;
        }
        seen[0] = number + 1;
    }
}
