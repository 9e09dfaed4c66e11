//! The crate's results have the bits of C's, which tests/rust/reference.c prints.
#![cfg(all(feature = "store", feature = "model"))]
mod common;
use std::ops::ControlFlow;

use common::{cpu, numbers, reference};
use warpwave::{Collection, Generation, Metric, Model, QuantType, Quantized, Query, Reduce, Rows, Tensor, TokenFlags};

fn bits(values: &[f32]) -> Vec<String> {
    values.iter().map(|value| format!("{:08x}", value.to_bits())).collect()
}

fn decimals<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(T::to_string).collect()
}

#[test]
fn searches_have_the_rows_and_scores_of_c() {
    let Some((_folder, expected)) = reference() else { return };
    let (rows, queries) = (numbers(1, 500 * 37), numbers(2, 7 * 37));
    for (metric, name) in [(Metric::Cosine, "cosine"), (Metric::L2, "l2"), (Metric::Dot, "dot")] {
        let collection = Collection::new(&cpu(), 37, metric).unwrap();
        collection.add(&Rows::new(37, &rows)).unwrap();
        let query = Query::batch(&queries, 7).nearest(9);
        let results = collection.query(&query).unwrap();
        assert_eq!(decimals(results.rows()), expected[&format!("rows_{name}")]);
        assert_eq!(bits(results.scores()), expected[&format!("scores_{name}")]);
        let (mut found, mut scores) = (vec![0; 63], vec![0.0; 63]);
        collection.search(&query, &mut found, &mut scores).unwrap();
        assert_eq!(decimals(&found), expected[&format!("rows_{name}")]);
        assert_eq!(bits(&scores), expected[&format!("scores_{name}")]);
        let tensor = Tensor::from_slice(&cpu(), &[7, 37], &queries).unwrap();
        assert_eq!(bits(collection.query(&Query::tensor(&tensor).nearest(9)).unwrap().scores()), bits(&scores));
    }
}

#[test]
fn tensors_have_the_bits_of_c() {
    let Some((_folder, expected)) = reference() else { return };
    let device = cpu();
    let (a, b) = (numbers(3, 64 * 64), numbers(4, 64 * 64));
    let x = Tensor::from_slice(&device, &[64, 64], &a).unwrap();
    let y = Tensor::from_slice(&device, &[64, 64], &b).unwrap();
    let matrix = Quantized::from_f32(&device, QuantType::Q4_0, &b, 64, 64).unwrap();
    device.seed(11).unwrap();
    let normal = Tensor::normal(&device, warpwave::DType::F32, &[64, 64], 0.0, 1.0).unwrap();
    let results = [
        ("matmul", x.matmul(&y)),
        ("gelu", x.gelu()),
        ("softmax", x.softmax(-1)),
        ("sum", y.reduce(Reduce::Sum, &[1])),
        ("quantized", matrix.matmul(&x)),
        ("normal", Ok(normal)),
    ];
    for (name, result) in results {
        assert_eq!(bits(&result.unwrap().to_vec().unwrap()), expected[name], "{name}");
    }
}

#[test]
fn embeddings_and_texts_have_the_bits_of_c() {
    let Some((folder, expected)) = reference() else { return };
    let device = cpu();
    let encoder = Model::open(folder.join("encoder.gguf"), &device).unwrap();
    assert_eq!(bits(&encoder.embed(&["a fox", "dogs dogs dogs", ""], None).unwrap()), expected["embed"]);
    let ids = encoder.tokenize("a fox", TokenFlags::default()).unwrap();
    let width = encoder.info().unwrap().width() as usize;
    assert_eq!(bits(&encoder.embed_tokens(&[ids]).unwrap()), expected["embed"][..width]);

    let short = warpwave::shorten_embeddings(&encoder.embed(&["a fox"], None).unwrap(), width, 8).unwrap();
    let length: f32 = short.iter().map(|x| x * x).sum();
    assert!(short.len() == 8 && (length - 1.0).abs() < 1e-6, "{short:?}");

    let ranker = Model::open(folder.join("ranker.gguf"), &device).unwrap();
    let mut told = 0;
    let mut tell = |done, _| {
        told = done;
        ControlFlow::Continue(())
    };
    let scores = ranker.rerank("a dog", &["a fox", "dogs dogs dogs", ""], Some(&mut tell)).unwrap();
    assert_eq!((bits(&scores), told), (expected["rerank"].clone(), 3));
    assert_eq!(encoder.rerank("a dog", &["a fox"], None).unwrap_err().status(), warpwave::Status::Unsupported);

    let decoder = Model::open(folder.join("decoder.gguf"), &device).unwrap();
    let mut session = decoder.session().unwrap();
    session.feed(&decoder.tokenize("dogs dogs dogs", TokenFlags::default()).unwrap()).unwrap();
    assert_eq!(bits(&session.logits().unwrap()), expected["logits"]);
    let mut fork = session.fork().unwrap();
    let mut heard = String::new();
    let how = Generation { tokens: 12, ignore_eos: true, ..Default::default() };
    let mut listen = |text: &str| {
        heard.push_str(text);
        ControlFlow::Continue(())
    };
    session.generate(&how, &mut listen).unwrap();
    assert_eq!(decimals(&session.tokens().unwrap()), expected["generated"]);
    let fed = fork.len();
    let text = decoder.detokenize(&session.tokens().unwrap()[fed..]).unwrap();
    assert!(String::from_utf8_lossy(&text).starts_with(heard.trim_end_matches('\u{fffd}')), "{heard:?}");
    fork.generate(&how, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(fork.tokens().unwrap(), session.tokens().unwrap());
}
