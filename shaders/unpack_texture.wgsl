// The texels of a texture, 8 bits a channel and normalised, become the bytes of a frame: rows of `pitch` bytes, of pixels of `channels`
// bytes. A thread writes a word.
//
// A texel c/255 comes as the float next to it, so that rounding gives c again.

override height: u32;
override width: u32;
override channels: u32; // 1, 3 or 4
override pitch: u32; // bytes of a row
override bgr: bool; // blue first

const GROUP = 256u;

@group(0) @binding(0) var texels: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

// The bytes of a pixel in the frame's order.
fn pixel(column: u32, row: u32) -> vec4<u32> {
    let texel = vec4<u32>(textureLoad(texels, vec2<u32>(column, row), 0) * 255.0 + 0.5);
    if bgr {
        return texel.zyxw;
    }
    return texel;
}

fn byte_at(position: u32) -> u32 {
    let row = position / pitch;
    let within = position - row * pitch;
    let column = within / channels;
    if row >= height || column >= width {
        return 0u;
    }
    let bytes = pixel(column, row);
    switch within - column * channels {
        case 0u: { return bytes.x; }
        case 1u: { return bytes.y; }
        case 2u: { return bytes.z; }
        default: { return bytes.w; }
    }
}

@compute @workgroup_size(GROUP)
fn unpack(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index >= arrayLength(&words) {
        return;
    }
    if channels == 4u && pitch % 4u == 0u {
        let row = index / (pitch / 4u);
        let column = index - row * (pitch / 4u);
        var word = 0u;
        if row < height && column < width {
            word = pack4xU8(pixel(column, row));
        }
        words[index] = word;
        return;
    }
    let first = 4u * index;
    words[index] = pack4xU8(vec4<u32>(byte_at(first), byte_at(first + 1u), byte_at(first + 2u), byte_at(first + 3u)));
}
