// What a measured consumer does with a batch: fixed work of one workgroup, and two looks at the tensor, before the work and after it.
//
// The looks tell whether the tensor was there when the work began, and whether it was left alone until the work ended. One dispatch
// follows another, so that their counts need no order of their own.

struct Job {
    iterations: u32,
    stride: u32, // words of the tensor between two looks
    keep: u32, // batches of which the sums are kept
}

// Read as atomics, so that the second look is not served from what the first one saw.
@group(0) @binding(0) var<storage, read_write> tensor: array<atomic<u32>>;
// The number of batches so far, how many of them changed, and the sums of the first ones.
@group(0) @binding(1) var<storage, read_write> seen: array<u32>;
@group(0) @binding(2) var<uniform> job: Job;

const THREADS: u32 = 32u;
const LOOKS: u32 = 16u;

var<workgroup> before: atomic<u32>;
var<workgroup> after: atomic<u32>;

fn look(thread: u32, skew: u32) -> u32 {
    var sum = 0u;
    for (var i = 0u; i < LOOKS; i += 1u) {
        let at = thread + THREADS * i;
        sum += atomicLoad(&tensor[at * job.stride + skew]) * (2u * at + 1u);
    }
    return sum;
}

// A multiplication and what keeps compilers from making one of many; the lowest bit changes.
fn turn(x: u32) -> u32 {
    let next = x * 1664525u + 1013904223u;
    return next ^ ((next >> 16u) << 1u);
}

@compute @workgroup_size(32)
fn consume(@builtin(local_invocation_index) thread: u32) {
    let first = look(thread, 0u);
    atomicAdd(&before, first);
    // Even, and it stays even: sixteen steps change the lowest bit sixteen times.
    var x = first << 1u;
    for (var i = 0u; i < job.iterations; i += 1u) {
        // Written out: some drivers stop a loop after 65,535 turns.
        x = turn(turn(turn(turn(x))));
        x = turn(turn(turn(turn(x))));
        x = turn(turn(turn(turn(x))));
        x = turn(turn(turn(turn(x))));
    }
    // The second look has to wait for the work: where it looks depends on it.
    atomicAdd(&after, look(thread, x & 1u));
    workgroupBarrier();
    if thread == 0u {
        let sum = atomicLoad(&before);
        let number = seen[0];
        if sum != atomicLoad(&after) {
            seen[1] += 1u;
        }
        if number < job.keep {
            seen[2u + number] = sum;
        }
        seen[0] = number + 1u;
    }
}
