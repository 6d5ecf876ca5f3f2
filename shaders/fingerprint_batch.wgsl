// The checksums of a batch whose samples lie back to back. Follows fingerprint.wgsl.
//
// x counts workgroups within a sample, y and z count samples.

struct Segment {
    skip: u32, // bytes before the first sample: a binding starts at aligned addresses only
    first: u32, // the first sample's place among the sums
    samples: u32,
    unused: u32,
}

@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<uniform> segment: Segment;

fn source_word(index: u32) -> u32 {
    if index < arrayLength(&source) {
        return source[index];
    }
    return 0u;
}

// Four bytes of a sample, which may start at any byte.
fn sample_word(start: u32, position: u32) -> u32 {
    let offset = start + 4u * position;
    let shift = (offset & 3u) * 8u;
    var word = source_word(offset >> 2u) >> shift;
    if shift != 0u {
        word |= source_word((offset >> 2u) + 1u) << (32u - shift);
    }
    return trimmed(word, position);
}

@compute @workgroup_size(GROUP)
fn fingerprint(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let sample = group.z * groups.y + group.y;
    let present = sample < segment.samples;
    let words = select(0u, (sample_bytes + 3u) / 4u, present);
    let start = segment.skip + sample * sample_bytes;
    var sum = vec2<u32>(0u);
    for (var turn = 0u; turn < steps; turn++) {
        // Neighbours in a workgroup read neighbouring words.
        let position = (group.x * steps + turn) * GROUP + local;
        if position < words {
            sum += term(sample_word(start, position), position);
        }
    }
    add_sums(sum, present, segment.first + sample, local);
}
