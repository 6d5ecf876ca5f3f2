// The checksum of src/preprocess/fingerprint.rs: what its kernels share. A workgroup sums 256 * steps words of one sample.

override sample_bytes: u32;
override steps: u32; // words a thread

// Two words a sample, which were zero before.
@group(0) @binding(0) var<storage, read_write> sums: array<atomic<u32>>;

const GROUP = 256u;

var<workgroup> partial: array<vec2<u32>, GROUP>;

fn mix32(value: u32) -> u32 {
    var x = value;
    x ^= x >> 16u;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13u;
    x *= 0xC2B2AE35u;
    return x ^ (x >> 16u);
}

// The part of the sums that a word at this position of its sample is.
fn term(word: u32, position: u32) -> vec2<u32> {
    return vec2<u32>(mix32(word ^ mix32(position + 0x9E3779B9u)), mix32(word ^ mix32(position + 0x85EBCA6Bu)));
}

// Without the bytes after the sample's end.
fn trimmed(word: u32, position: u32) -> u32 {
    let rest = sample_bytes - 4u * position;
    if rest < 4u {
        return word & ((1u << (8u * rest)) - 1u);
    }
    return word;
}

// Adds the workgroup's sums to those of a sample. All threads take part, whether or not there is a sample.
fn add_sums(sum: vec2<u32>, present: bool, sample: u32, local: u32) {
    partial[local] = sum;
    workgroupBarrier();
    for (var width = GROUP / 2u; width > 0u; width /= 2u) {
        if local < width {
            partial[local] += partial[local + width];
        }
        workgroupBarrier();
    }
    let place = 2u * sample;
    if local == 0u && present && place + 1u < arrayLength(&sums) {
        atomicAdd(&sums[place], partial[0].x);
        atomicAdd(&sums[place + 1u], partial[0].y);
    }
}
