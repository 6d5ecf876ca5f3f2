// Imported memory becomes the tensor in one pass. Follows normalize.wgsl and gather.wgsl.

override words: u32; // source words a thread
override format: u32; // elements: 0 bytes as they are, 1 f32, 2 f16
override nchw: bool;

@group(0) @binding(0) var<storage, read_write> tensor: array<vec4<u32>>;
// The same, for what writes four halves at a time.
@group(0) @binding(0) var<storage, read_write> halves: array<vec2<u32>>;

// What a workgroup reads: at most 4 words a thread, and one more where a sample does not start at a word.
var<workgroup> tile: array<u32, 1025>;

// Where a sample is a whole number of vectors: x counts workgroups within it. Each word crosses the bus once, and neighbouring
// threads ask for neighbouring words; what a thread needs it finds in the tile.

struct Task {
    present: bool,
    place: u32, // of the sample, within the segment
    index: u32, // of the thread, within the sample
    shift: u32,
}

fn read_tile(group: vec3<u32>, groups: vec3<u32>, local: u32) -> Task {
    let sample = job(group.z * groups.y + group.y);
    let all = bytes / 4u;
    let first = group.x * GROUP * words;
    var needed = 0u;
    if sample.present && first < all {
        needed = min(all - first, GROUP * words) + 1u;
    }
    let base = (sample.start >> 2u) + first;
    for (var turn = 0u; turn < words; turn++) {
        let at = turn * GROUP + local;
        if at < needed {
            tile[at] = source_word(base + at);
        }
    }
    if local == 0u && needed == GROUP * words + 1u {
        tile[GROUP * words] = source_word(base + GROUP * words);
    }
    workgroupBarrier();
    return Task((local + 1u) * words < needed, sample.place, group.x * GROUP + local, (sample.start & 3u) * 8u);
}

fn tile_word(at: u32, shift: u32) -> u32 {
    var word = tile[at] >> shift;
    if shift != 0u {
        word |= tile[at + 1u] << (32u - shift);
    }
    return word;
}

fn store(at: u32, value: vec4<u32>) {
    if at < arrayLength(&tensor) {
        tensor[at] = value;
    }
}

@compute @workgroup_size(GROUP)
fn gather_bytes(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let task = read_tile(group, groups, local);
    let at = 4u * local;
    if task.present {
        let value = vec4<u32>(
            tile_word(at, task.shift),
            tile_word(at + 1u, task.shift),
            tile_word(at + 2u, task.shift),
            tile_word(at + 3u, task.shift),
        );
        store(task.place * (bytes / 16u) + task.index, value);
    }
}

@compute @workgroup_size(GROUP)
fn gather_interleaved(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let task = read_tile(group, groups, local);
    if !task.present {
        return;
    }
    let at = words * local;
    let place = task.place * (bytes / (4u * words)) + task.index;
    let low = interleaved_values(tile_word(at, task.shift), words * task.index);
    if half {
        let high = interleaved_values(tile_word(at + 1u, task.shift), words * task.index + 1u);
        store(place, pack_halves(low, high));
    } else {
        store(place, bitcast<vec4<u32>>(low));
    }
}

fn store_half(at: u32, value: vec2<u32>) {
    if at < arrayLength(&halves) {
        halves[at] = value;
    }
}

fn tile_quad(at: u32, shift: u32) -> Quad {
    var fourth = 0u;
    if channels == 4u {
        fourth = tile_word(at + 3u, shift);
    }
    return quad_of(tile_word(at, shift), tile_word(at + 1u, shift), tile_word(at + 2u, shift), fourth);
}

// Four pixels a thread, and one vector of each plane.

@compute @workgroup_size(GROUP)
fn gather_planar(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let task = read_tile(group, groups, local);
    if !task.present {
        return;
    }
    let vectors = plane / 4u;
    let place = task.place * channels * vectors + task.index;
    let values = tile_quad(words * local, task.shift);
    store(place, bitcast<vec4<u32>>(values.c0));
    store(place + vectors, bitcast<vec4<u32>>(values.c1));
    store(place + 2u * vectors, bitcast<vec4<u32>>(values.c2));
    if channels == 4u {
        store(place + 3u * vectors, bitcast<vec4<u32>>(values.c3));
    }
}

@compute @workgroup_size(GROUP)
fn gather_planar_half(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let task = read_tile(group, groups, local);
    if !task.present {
        return;
    }
    let vectors = plane / 4u;
    let place = task.place * channels * vectors + task.index;
    let values = tile_quad(words * local, task.shift);
    store_half(place, pack_half(values.c0));
    store_half(place + vectors, pack_half(values.c1));
    store_half(place + 2u * vectors, pack_half(values.c2));
    if channels == 4u {
        store_half(place + 3u * vectors, pack_half(values.c3));
    }
}

// Samples of any size: a vector may span several, of which only some are in this window. What is not stays as it was, and no
// other thread of the dispatch writes the vector. Each element finds its own byte; x and y count the segment's vectors.

// An element of the segment, and the bits of the word that it is.
fn element(index: u32) -> vec2<u32> {
    let sample = index / bytes;
    let within = index - sample * bytes;
    if sample >= segment.samples {
        return vec2<u32>(0u);
    }
    let entry = list[window.count + batch + segment.first + sample];
    if entry.x != window.index {
        return vec2<u32>(0u);
    }
    var channel = within % channels;
    var position = within;
    if nchw {
        channel = within / plane;
        position = (within - channel * plane) * channels + channel;
    }
    let start = entry.y + position;
    let byte = (source_word(start >> 2u) >> ((start & 3u) * 8u)) & 255u;
    if format == 0u {
        return vec2<u32>(byte, 0xffu);
    }
    let value = value_of(byte, channel);
    if format == 1u {
        return vec2<u32>(bitcast<u32>(value), 0xffffffffu);
    }
    return vec2<u32>(half_bits(vec4<f32>(value)).x, 0xffffu);
}

@compute @workgroup_size(GROUP)
fn gather_any(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    if index >= arrayLength(&tensor) {
        return;
    }
    let each = select(select(2u, 1u, format == 1u), 4u, format == 0u); // elements a word
    let width = 32u / each;
    var value = vec4<u32>(0u);
    var mask = vec4<u32>(0u);
    for (var word = 0u; word < 4u; word++) {
        for (var part = 0u; part < each; part++) {
            let one = element((index * 4u + word) * each + part);
            value[word] |= one.x << (part * width);
            mask[word] |= one.y << (part * width);
        }
    }
    if all(mask == vec4<u32>(0xffffffffu)) {
        tensor[index] = value;
    } else if any(mask != vec4<u32>(0u)) {
        tensor[index] = (tensor[index] & ~mask) | value;
    }
}
