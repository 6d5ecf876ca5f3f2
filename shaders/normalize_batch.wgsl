// The kernels that normalise a batch whose images lie back to back. Follows normalize.wgsl.
//
// A thread writes vectors of two or four words: scalar stores reach a fraction of a large GPU's memory bandwidth. The number of
// workgroups is the number of samples. Threads past the last sample write padding or unused samples of the bound range, and
// never outside it. That is checked here, since not every driver does.

@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read_write> tensor: array<vec4<u32>>;
// The same, for what writes four halves at a time.
@group(0) @binding(1) var<storage, read_write> halves: array<vec2<u32>>;

fn interleaved_word(index: u32) -> vec4<f32> {
    var word = 0u;
    if index < arrayLength(&pixels) {
        word = pixels[index];
    }
    return interleaved_values(word, index);
}

@compute @workgroup_size(GROUP)
fn interleaved(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    if index >= arrayLength(&tensor) {
        return;
    }
    if half {
        tensor[index] = pack_halves(interleaved_word(2u * index), interleaved_word(2u * index + 1u));
    } else {
        tensor[index] = bitcast<vec4<u32>>(interleaved_word(index));
    }
}

// NCHW of 3 or 4 channels, where a plane is a whole number of vectors: four pixels a thread, which are as many source words as there
// are channels, and one vector of each plane.

// Four pixels from the `channels` words at `first`.
fn quad(first: u32) -> Quad {
    var fourth = 0u;
    if channels == 4u {
        fourth = pixels[first + 3u];
    }
    return quad_of(pixels[first], pixels[first + 1u], pixels[first + 2u], fourth);
}

// Where a thread's vector of the first plane lies; those of the other planes follow, `plane / 4` vectors apart.
fn place_of(index: u32) -> u32 {
    let vectors = plane / 4u;
    let sample = index / vectors;
    return sample * channels * vectors + (index - sample * vectors);
}

@compute @workgroup_size(GROUP)
fn planar(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    let vectors = plane / 4u;
    let place = place_of(index);
    if (index + 1u) * channels > arrayLength(&pixels) || place + (channels - 1u) * vectors >= arrayLength(&tensor) {
        return;
    }
    let values = quad(index * channels);
    tensor[place] = bitcast<vec4<u32>>(values.c0);
    tensor[place + vectors] = bitcast<vec4<u32>>(values.c1);
    tensor[place + 2u * vectors] = bitcast<vec4<u32>>(values.c2);
    if channels == 4u {
        tensor[place + 3u * vectors] = bitcast<vec4<u32>>(values.c3);
    }
}

@compute @workgroup_size(GROUP)
fn planar_half(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    let vectors = plane / 4u;
    let place = place_of(index);
    if (index + 1u) * channels > arrayLength(&pixels) || place + (channels - 1u) * vectors >= arrayLength(&halves) {
        return;
    }
    let values = quad(index * channels);
    halves[place] = pack_half(values.c0);
    halves[place + vectors] = pack_half(values.c1);
    halves[place + 2u * vectors] = pack_half(values.c2);
    if channels == 4u {
        halves[place + 3u * vectors] = pack_half(values.c3);
    }
}

// NCHW of any plane: a vector may span planes and samples, so each element finds its own byte.

fn planar_element(element: u32) -> f32 {
    let sample = element / image;
    let within = element - sample * image;
    let channel = within / plane;
    let pixel = within - channel * plane;
    let position = sample * image + pixel * channels + channel;
    var word = 0u;
    if (position >> 2u) < arrayLength(&pixels) {
        word = pixels[position >> 2u];
    }
    return value_of((word >> ((position & 3u) * 8u)) & 255u, channel);
}

fn planar_elements(first: u32) -> vec4<f32> {
    return vec4<f32>(
        planar_element(first),
        planar_element(first + 1u),
        planar_element(first + 2u),
        planar_element(first + 3u),
    );
}

@compute @workgroup_size(GROUP)
fn planar_any(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    if index >= arrayLength(&tensor) {
        return;
    }
    if half {
        tensor[index] = pack_halves(planar_elements(8u * index), planar_elements(8u * index + 4u));
    } else {
        tensor[index] = bitcast<vec4<u32>>(planar_elements(4u * index));
    }
}
