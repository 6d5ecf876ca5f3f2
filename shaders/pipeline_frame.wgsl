// How pipeline.wgsl reads a frame: the components of one pixel of any format.

fn byte_at(address: u32) -> f32 {
    return f32((pixels[address >> 2u] >> ((address & 3u) * 8u)) & 255u);
}

// Three bytes from any address on.
fn three_at(address: u32) -> u32 {
    let word = address >> 2u;
    let shift = (address & 3u) * 8u;
    let high = pixels[min(word + 1u, arrayLength(&pixels) - 1u)];
    // Shifted twice, since a shift by all 32 bits would be one by none.
    return (pixels[word] >> shift) | ((high << 1u) << (31u - shift));
}

// Cb and Cr of a pair of samples.
fn chroma_at(first: u32, x: u32, y: u32) -> vec2<f32> {
    if format == 3u {
        let address = first + plane1 + y * pitch + 2u * x;
        let pair = pixels[address >> 2u] >> ((address & 2u) * 8u);
        return vec2<f32>(f32(pair & 255u), f32((pair >> 8u) & 255u));
    }
    let within = first + y * (pitch / 2u) + x;
    return vec2<f32>(byte_at(within + plane1), byte_at(within + plane2));
}

// Chroma between its samples, at a pixel's centre. The weight of the sample further on is in quarters.
fn chroma_of(first: u32, x: u32, y: u32) -> vec2<f32> {
    let last_x = (frame_width + 1u) / 2u - 1u;
    let last_y = (frame_height + 1u) / 2u - 1u;
    // Half a pixel up where samples are centred: rounded towards minus infinity by way of one more.
    var column = (x + 1u) / 2u;
    var across = 0.75 - 0.5 * f32(x & 1u);
    if left_sited {
        column = x / 2u + 1u;
        across = 0.5 * f32(x & 1u);
    }
    let row = (y + 1u) / 2u;
    let x0 = min(max(column, 1u) - 1u, last_x);
    let x1 = min(column, last_x);
    let y0 = min(max(row, 1u) - 1u, last_y);
    let y1 = min(row, last_y);
    let down = 0.75 - 0.5 * f32(y & 1u);
    let above = mix(chroma_at(first, x0, y0), chroma_at(first, x1, y0), across);
    let below = mix(chroma_at(first, x0, y1), chroma_at(first, x1, y1), across);
    return mix(above, below, down);
}

// The components of the pixel whose first byte this is, as they are stored.
fn components_at(address: u32) -> vec3<f32> {
    if format == 0u {
        return vec3<f32>(byte_at(address), 0.0, 0.0);
    }
    var bytes = 0u;
    if format == 2u && (sample_bytes & 3u) == 0u && (pitch & 3u) == 0u {
        bytes = pixels[address >> 2u];
    } else {
        bytes = three_at(address);
    }
    return vec3<f32>(f32(bytes & 255u), f32((bytes >> 8u) & 255u), f32((bytes >> 16u) & 255u));
}

// A sample's frame. The steps lead from one pixel to the next along the tensor's axes.
struct Frame {
    first: u32, // byte
    step: vec2<u32>,
    transposed: bool,
}

fn frame_of(sample: u32) -> Frame {
    let transposed = (u32(records[(run.first + sample) * 6u + 2u].x) & 4u) != 0u;
    let step = vec2<u32>(select(4u, 2u * format + 1u, format < 2u), pitch);
    return Frame(sample * sample_bytes, select(step, step.yx, transposed), transposed);
}

// The components of a pixel, as they are stored; luma comes before chroma. `x` and `y` are along the tensor's axes.
fn stored_at(frame: Frame, x: u32, y: u32) -> vec3<f32> {
    if format < 3u {
        return components_at(frame.first + x * frame.step.x + y * frame.step.y);
    }
    let column = select(x, y, frame.transposed);
    let row = select(y, x, frame.transposed);
    return vec3<f32>(byte_at(frame.first + row * pitch + column), chroma_of(frame.first, column, row));
}
