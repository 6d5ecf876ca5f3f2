//! Every shader with every combination of its overrides translates to every shading language, so that a change cannot
//! break Metal or DX12 unseen where neither can run.

use naga::back::{self, PipelineConstants, pipeline_constants::process_overrides};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Module, ShaderStage};

const NORMALIZE: &str = concat!(include_str!("../shaders/half.wgsl"), include_str!("../shaders/normalize.wgsl"));
const PIPELINE: &str = concat!(
    include_str!("../shaders/half.wgsl"),
    include_str!("../shaders/pipeline_frame.wgsl"),
    include_str!("../shaders/pipeline_span.wgsl"),
    include_str!("../shaders/pipeline.wgsl"),
    include_str!("../shaders/pipeline_near.wgsl")
);
/// The ways to pack halves.
const PACK: [&str; 2] = [include_str!("../shaders/pack_builtin.wgsl"), include_str!("../shaders/pack_integer.wgsl")];
const BATCH: &str = include_str!("../shaders/normalize_batch.wgsl");
const FINGERPRINT: &str =
    concat!(include_str!("../shaders/fingerprint.wgsl"), include_str!("../shaders/fingerprint_batch.wgsl"));
const UNPACK_TEXTURE: &str = include_str!("../shaders/unpack_texture.wgsl");
const GATHER_TENSOR: &str =
    concat!(include_str!("../shaders/gather.wgsl"), include_str!("../shaders/gather_tensor.wgsl"));
const GATHER_FINGERPRINT: &str = concat!(
    include_str!("../shaders/fingerprint.wgsl"),
    include_str!("../shaders/gather.wgsl"),
    include_str!("../shaders/gather_fingerprint.wgsl")
);

fn parse(source: &str) -> (Module, ModuleInfo) {
    let module = naga::front::wgsl::parse_str(source).unwrap_or_else(|e| panic!("{}", e.emit_to_string(source)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32)
        .validate(&module)
        .unwrap_or_else(|e| panic!("{}", e.emit_to_string(source)));
    (module, info)
}

fn translate(shader: &(Module, ModuleInfo), entry: &str, constants: &[(&str, f64)]) {
    let constants: PipelineConstants = constants.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let stage = ShaderStage::Compute;
    let (module, info) = process_overrides(&shader.0, &shader.1, Some((stage, entry)), &constants)
        .unwrap_or_else(|e| panic!("{entry} {constants:?}: {e}"));
    Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32)
        .validate(&module)
        .unwrap_or_else(|e| panic!("{entry} {constants:?}: {e:?}"));
    let fail = |language: &str, e: &dyn std::fmt::Display| -> ! { panic!("{entry} to {language} {constants:?}: {e}") };

    let options = back::spv::PipelineOptions { shader_stage: stage, entry_point: entry.to_owned() };
    back::spv::write_vec(&module, &info, &back::spv::Options::default(), Some(&options))
        .unwrap_or_else(|e| fail("SPIR-V", &e));

    let (_, translated) =
        back::msl::write_string(&module, &info, &back::msl::Options::default(), &back::msl::PipelineOptions::default())
            .unwrap_or_else(|e| fail("MSL", &e));
    translated.entry_point_names.into_iter().for_each(|name| drop(name.unwrap_or_else(|e| fail("MSL", &e))));

    hlsl(&module, &info).unwrap_or_else(|e| fail("HLSL", &e));
    glsl(&module, &info, entry).unwrap_or_else(|e| fail("GLSL", &e));
}

fn hlsl(module: &Module, info: &ModuleInfo) -> Result<(), String> {
    let constants = back::hlsl::BindTarget { space: 1, ..Default::default() };
    let options = back::hlsl::Options { special_constants_binding: Some(constants), ..Default::default() };
    let pipeline = back::hlsl::PipelineOptions::default();
    let mut text = String::new();
    let translated =
        back::hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None).map_err(|e| e.to_string())?;
    // Two views of one buffer are one register, of which an entry point may use only one.
    let mut registers: Vec<_> = text.split("register(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    registers.sort_unstable();
    if let Some(twice) = registers.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("{} is used twice", twice[0]));
    }
    translated.entry_point_names.into_iter().try_for_each(|name| name.map(drop).map_err(|e| e.to_string()))
}

fn glsl(module: &Module, info: &ModuleInfo, entry: &str) -> Result<(), String> {
    let options = back::glsl::Options { version: back::glsl::Version::new_gles(310), ..Default::default() };
    let pipeline = back::glsl::PipelineOptions {
        shader_stage: ShaderStage::Compute,
        entry_point: entry.to_owned(),
        multiview: None,
    };
    let mut text = String::new();
    back::glsl::Writer::new(&mut text, module, info, &options, &pipeline, naga::proc::BoundsCheckPolicies::default())
        .and_then(|mut writer| writer.write())
        .map(drop)
        .map_err(|e| e.to_string())
}

/// The overrides of normalize.wgsl.
fn normalization(channels: f64, plane: f64, half: f64, tame: f64) -> Vec<(&'static str, f64)> {
    let mut constants = vec![("channels", channels), ("plane", plane), ("half", half), ("tame", tame)];
    constants.extend(["scale0", "scale1", "scale2", "scale3"].map(|name| (name, f64::from(1.0f32 / (255.0 * 0.229)))));
    constants.extend(["bias0", "bias1", "bias2", "bias3"].map(|name| (name, f64::from(-0.485f32 / 0.229))));
    constants
}

/// Every pair.
fn all_of<const N: usize>(packs: [&'static str; 2], entries: [&'static str; N]) -> Vec<(&'static str, &'static str)> {
    packs.into_iter().flat_map(|pack| entries.map(|entry| (pack, entry))).collect()
}

#[test]
fn normalisation_translates_to_every_language() {
    for (pack, entry) in all_of(PACK, ["interleaved", "planar", "planar_half", "planar_any"]) {
        let shader = parse(&[NORMALIZE, pack, BATCH].concat());
        for channels in [1.0, 3.0, 4.0] {
            for (half, tame) in [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)] {
                for plane in [1.0, 20.0, 527.0, 50_176.0, 16_777_216.0] {
                    // Whole vectors of several planes are what these are for; elsewhere they would divide by zero.
                    if ["planar", "planar_half"].contains(&entry) && (channels == 1.0 || plane % 4.0 != 0.0) {
                        continue;
                    }
                    translate(&shader, entry, &normalization(channels, plane, half, tame));
                }
            }
        }
    }
}

#[test]
fn gathering_translates_to_every_language() {
    let entries = ["gather_bytes", "gather_interleaved", "gather_planar", "gather_planar_half", "gather_any"];
    for (pack, entry) in all_of(PACK, entries) {
        let shader = parse(&[NORMALIZE, pack, GATHER_TENSOR].concat());
        for channels in [1.0, 3.0, 4.0] {
            for (format, words) in [(0.0, 4.0), (1.0, channels), (2.0, channels)] {
                for nchw in [0.0, 1.0] {
                    let plane = 50_176.0;
                    let mut constants = normalization(channels, plane, f64::from(u8::from(format == 2.0)), 1.0);
                    constants.extend([("batch", 256.0), ("bytes", channels * plane)]);
                    constants.extend([("words", words), ("format", format), ("nchw", nchw)]);
                    translate(&shader, entry, &constants);
                }
            }
        }
    }
    let sums = [("sample_bytes", 1581.0), ("steps", 16.0), ("batch", 256.0), ("bytes", 1581.0)];
    translate(&parse(GATHER_FINGERPRINT), "gather_fingerprint", &sums);
}

/// The overrides of pipeline.wgsl, those that choose code first.
fn pipeline(threads: f64, [format, taps, dtype, channels, planar]: [f64; 5]) -> Vec<(&'static str, f64)> {
    let mut constants =
        vec![("format", format), ("taps", taps), ("dtype", dtype), ("channels", channels), ("planar", planar)];
    constants.extend([("pitch", 1284.0), ("frame_width", 321.0), ("frame_height", 201.0), ("sample_bytes", 400_000.0)]);
    constants.extend([
        ("plane1", 258_084.0),
        ("plane2", 322_926.0),
        ("left_sited", 1.0),
        ("antialias", 1.0),
        ("keeps_values", 0.0),
    ]);
    constants.extend([("tile_rows", if threads > 1.0 { 2.0 } else { 32.0 }), ("threads", threads)]);
    constants.extend([("width", 224.0), ("height", 225.0), ("least", -128.0), ("most", 127.0), ("zero_point", -3.0)]);
    constants.extend(["scale0", "scale1", "scale2"].map(|name| (name, 0.0171)));
    constants.extend(["bias0", "bias1", "bias2", "fill0", "fill1", "fill2"].map(|name| (name, -2.1)));
    constants
}

#[test]
fn pipelines_translate_to_every_language() {
    let shader = parse(PIPELINE);
    for (entry, threads) in [("pipeline", 1.0), ("pipeline", 4.0), ("pipeline_any", 1.0)] {
        for format in 0..5 {
            for taps in 0..3 {
                for (dtype, channels, planar) in [(0, 3, 1), (0, 3, 0), (1, 3, 0), (2, 1, 1), (3, 3, 1), (3, 3, 0)] {
                    translate(
                        &shader,
                        entry,
                        &pipeline(threads, [format, taps, dtype, channels, planar].map(f64::from)),
                    );
                }
            }
        }
    }
}

#[test]
fn extreme_scales_translate() {
    let shader = parse(&[NORMALIZE, PACK[1], BATCH].concat());
    for extreme in [1e-33f32, -1e30, f32::MIN_POSITIVE, f32::MAX] {
        let mut constants = vec![("channels", 1.0), ("plane", 4.0), ("half", 1.0), ("tame", 0.0)];
        for name in ["scale0", "scale1", "scale2", "scale3", "bias0", "bias1", "bias2", "bias3"] {
            constants.push((name, f64::from(extreme)));
        }
        translate(&shader, "interleaved", &constants);
    }
}

#[test]
fn fingerprints_translate_to_every_language() {
    let shader = parse(FINGERPRINT);
    for sample_bytes in [1.0, 1581.0, 150_528.0, f64::from(u32::MAX - 16)] {
        for steps in [1.0, 16.0, 65_535.0] {
            translate(&shader, "fingerprint", &[("sample_bytes", sample_bytes), ("steps", steps)]);
        }
    }
}

#[test]
fn the_copying_kernel_translates_to_every_language() {
    translate(&parse(include_str!("../shaders/copy.wgsl")), "copy", &[]);
}

#[test]
fn the_kernel_of_a_measured_consumer_translates_to_every_language() {
    translate(&parse(include_str!("../shaders/consume.wgsl")), "consume", &[]);
}

#[test]
fn the_kernel_that_reads_textures_translates_to_every_language() {
    let shader = parse(UNPACK_TEXTURE);
    for (channels, pitch) in [(1.0, 7.0), (3.0, 21.0), (3.0, 32.0), (4.0, 28.0), (4.0, 29.0)] {
        for bgr in [0.0, 1.0] {
            let size = [("height", 5.0), ("width", 7.0)];
            translate(
                &shader,
                "unpack",
                &[&size[..], &[("channels", channels), ("pitch", pitch), ("bgr", bgr)]].concat(),
            );
        }
    }
}

/// Kernels are compiled without a counter in each loop that would end it.
#[test]
fn every_loop_counts_to_an_end() {
    let shaders =
        [NORMALIZE, PACK[0], PACK[1], BATCH, PIPELINE, FINGERPRINT, UNPACK_TEXTURE, GATHER_TENSOR, GATHER_FINGERPRINT];
    for line in shaders.iter().flat_map(|text| text.lines()) {
        let code = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = code.split(|letter: char| !letter.is_alphanumeric()).collect();
        assert!(!words.contains(&"while") && !words.contains(&"loop"), "{line}");
        if words.contains(&"for") {
            let [_, until, step] = code.split(';').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let counts = until.contains('<') && (step.contains("++") || step.contains("+="));
            assert!(counts || (until.contains("> 0u") && step.contains("/= 2u")), "{line}");
        }
    }
}
