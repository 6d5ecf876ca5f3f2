use super::*;
use crate::layout::PixelFormat;
use crate::preprocess::pipeline::Flip;

fn frame(height: usize, width: usize) -> FrameLayout {
    FrameLayout::new(PixelFormat::Rgb8, height, width).expect("a frame")
}

fn of(pipeline: &Pipeline, height: usize, width: usize) -> Geometry {
    geometry(pipeline, &frame(height, width), 1).expect("it fits")
}

#[test]
fn a_letterbox_leaves_the_image_in_the_middle_and_the_larger_half_behind_it() {
    let found = of(&Pipeline::yolo(640), 720, 1280);
    assert_eq!((found.resized, found.offset), ([640, 360], [0, 140]));
    let found = of(&Pipeline::yolo(640), 1281, 999);
    assert_eq!((found.resized, found.offset), ([499, 640], [70, 0]));
    assert_eq!(tensor_size(&Pipeline::yolo(640), &frame(1, 1000)).expect("it fits"), [640, 640]);
    assert_eq!(of(&Pipeline::yolo(640), 1, 1000).resized, [640, 1], "a side never vanishes");
}

#[test]
fn the_shorter_side_is_resized_and_the_middle_cut_as_torchvision_does() {
    let found = of(&Pipeline::imagenet_eval(), 500, 375);
    // int(256 * 500 / 375) is 341, and round(58.5) is 58.
    assert_eq!((found.resized, found.offset), ([256, 341], [-16, -58]));
    let small = Pipeline { center_crop: Some((10, 7)), ..Pipeline::new() };
    let found = of(&small, 5, 8);
    assert_eq!((found.resized, found.offset), ([8, 5], [0, 2]), "it is filled below and above, and cut at the side");
}

#[test]
fn random_crops_are_within_their_ranges_and_depend_on_the_seed_alone() {
    let train = Pipeline::imagenet_train(224);
    let (frame, mut areas, mut flips) = (frame(375, 500), Vec::new(), 0);
    for seed in 0..1000 {
        let found = geometry(&train, &frame, seed).expect("it fits");
        assert_eq!(found, geometry(&train, &frame, seed).expect("it fits"));
        let [x, y, w, h] = found.source;
        assert!(x + w <= 500 && y + h <= 375 && found.resized == [224, 224]);
        let ratio = f64::from(w) / f64::from(h);
        assert!((0.73..1.37).contains(&ratio), "{ratio}");
        areas.push(f64::from(w * h) / (500.0 * 375.0));
        flips += usize::from(found.mirrored[0]);
    }
    let mean = areas.iter().sum::<f64>() / 1000.0;
    assert!((0.40..0.46).contains(&mean), "{mean}");
    assert!(areas.iter().all(|area| (0.079..=1.0).contains(area)) && (440..560).contains(&flips), "{flips}");
    // The same numbers on every machine.
    assert_eq!(geometry(&train, &frame, 7).expect("it fits").source, STORED_CROP);
}

const STORED_CROP: [u32; 4] = [285, 186, 168, 135];

#[test]
fn a_crop_that_never_fits_becomes_the_largest_in_the_middle() {
    let crop = Crop::Random { scale: (1.0, 1.0), ratio: (1.0, 1.0) };
    let pipeline = Pipeline::new().with_crop(crop).with_resize(Resize::Exact { height: 8, width: 8 });
    assert_eq!(of(&pipeline, 10, 30).source, [10, 0, 10, 10]);
    assert_eq!(of(&pipeline, 30, 10).source, [0, 10, 10, 10]);
}

#[test]
fn every_corner_of_the_tensor_is_found_in_the_frame_and_back() {
    for orientation in Orientation::ALL {
        for horizontal in [0.0, 1.0] {
            let pipeline =
                Pipeline { orientation, flip: Flip { horizontal, vertical: 1.0 - horizontal }, ..Pipeline::yolo(64) };
            let found = of(&pipeline, 30, 50);
            for point in [[0.0, 0.0], [64.0, 64.0], [3.5, 60.25]] {
                let back = found.to_tensor(found.to_frame(point));
                assert!(
                    point.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-9),
                    "{orientation:?} {point:?} {back:?}"
                );
            }
            let whole = found.box_to_tensor([0.0, 0.0, 50.0, 30.0]);
            let [w, h] = found.resized.map(f64::from);
            let [x, y] = found.offset.map(f64::from);
            assert_eq!(whole, [x, y, x + w, y + h], "{orientation:?}");
            assert_eq!(found.box_to_frame(whole), [0.0, 0.0, 50.0, 30.0]);
        }
    }
}

#[test]
fn exifs_turns_show_the_corner_that_they_should() {
    // Where the upper left pixel of the upright image is stored, in a frame of 3 columns and 2 rows.
    let corners = [[0, 0], [2, 0], [2, 1], [0, 1], [0, 0], [0, 1], [2, 1], [2, 0]];
    for (number, corner) in (1..).zip(corners) {
        let orientation = Orientation::from_exif(number).expect("one of eight");
        let found = of(&Pipeline { orientation, ..Pipeline::new() }, 2, 3);
        assert_eq!(found.to_frame([0.5, 0.5]), corner.map(|at| f64::from(at) + 0.5), "{orientation:?}");
    }
    assert_eq!((Orientation::from_exif(0), Orientation::from_exif(9)), (None, None));
}

#[test]
fn what_does_not_fit_is_named() {
    let refused = |pipeline: &Pipeline| tensor_size(pipeline, &frame(20, 30)).expect_err("it does not fit").to_string();
    let rect = Crop::Rect { left: 25, top: 0, height: 5, width: 6 };
    assert!(refused(&Pipeline::new().with_crop(rect)).contains("6x5 at 25, 0 does not lie inside of 30x20"));
    let center = Crop::Center { height: 21, width: 4 };
    assert!(refused(&Pipeline::new().with_crop(center)).contains("4x21 in the middle"));
    assert!(refused(&Pipeline::new().with_crop(Crop::RANDOM)).contains("every sample would have a size of its own"));
    assert!(refused(&Pipeline::yolo(40_000)).contains("40000"));
    let upright = Pipeline { orientation: Orientation::Rotate90, ..Pipeline::new().with_crop(rect) };
    assert!(refused(&upright).contains("20x30"), "it is the upright frame that is cut");
}
