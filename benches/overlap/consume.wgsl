// What a consumer does with a batch: fixed work, and two looks at the tensor, one before the work and one after it.
//
// The looks tell whether the tensor was there when the work began, and whether it was left alone until the work ended.

struct Job {
    iterations: u32,
    step: u32, // words of the tensor between two looks
    threads: u32, // of the whole dispatch
    mask: u32, // the scratch buffer's last vector
}

// Read as atomics, so that the second look is not served from what the first one saw.
@group(0) @binding(0) var<storage, read_write> tensor: array<atomic<u32>>;
// The number of batches so far, then two sums a batch.
@group(0) @binding(1) var<storage, read_write> sums: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> job: Job;
@group(0) @binding(3) var<storage, read_write> scratch: array<vec4<u32>>;

const LOOKERS: u32 = 32u;
const LOOKS: u32 = 16u;

fn look(thread: u32, which: u32) {
    if thread >= LOOKERS {
        return;
    }
    var sum = 0u;
    for (var i = 0u; i < LOOKS; i += 1u) {
        let at = thread + LOOKERS * i;
        sum += atomicLoad(&tensor[at * job.step]) * (2u * at + 1u);
    }
    atomicAdd(&sums[1u + 2u * atomicLoad(&sums[0]) + which], sum);
}

// One workgroup that computes and leaves memory alone: the rest of the device is idle.
@compute @workgroup_size(32)
fn narrow(@builtin(global_invocation_id) id: vec3<u32>) {
    look(id.x, 0u);
    var x = id.x + 1u;
    for (var i = 0u; i < job.iterations; i += 1u) {
        x = x * 1664525u + 1013904223u;
    }
    scratch[id.x & job.mask].x = x;
    look(id.x, 1u);
    storageBarrier();
    if id.x == 0u {
        atomicAdd(&sums[0], 1u);
    }
}

// Every workgroup that fits, bound by the device's memory.
@compute @workgroup_size(256)
fn wide(@builtin(global_invocation_id) id: vec3<u32>) {
    look(id.x, 0u);
    for (var i = 0u; i < job.iterations; i += 1u) {
        let at = (id.x + i * job.threads) & job.mask;
        scratch[at] = scratch[at] * 1664525u + 1013904223u;
    }
    look(id.x, 1u);
    storageBarrier();
    if id.x == 0u {
        atomicAdd(&sums[0], 1u);
    }
}
