//! Retrieval-augmented generation over a text file: its paragraphs are embedded into a store once, those nearest to a question are
//! found, and a decoder answers from them.
//!
//! `rag TEXT.txt ENCODER.gguf "QUESTION" [DECODER.gguf]`
//!
//! The store is TEXT.txt.db. It is made with the first question and used again by the next. Without a decoder the paragraphs are
//! printed.
use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;

use warpwave::{
    Collection, CollectionConfig, Device, Fetch, Generation, Metric, Model, Query, Rows, Status, Store, StoreModel, TokenFlags,
};

const PARAGRAPHS: usize = 3;

/// The collection of a text's paragraphs: the one that is in the store, or a new one.
fn paragraphs(store: &Store, encoder: &Model, text: &str) -> Result<Collection, Box<dyn Error>> {
    match store.collection("paragraphs") {
        Err(error) if error.status() == Status::NotFound => {}
        found => return Ok(found?),
    }
    let info = encoder.info()?;
    let pieces: Vec<&str> = text.split("\n\n").map(str::trim).filter(|piece| !piece.is_empty()).collect();
    let vectors = encoder.embed(&pieces, None)?;
    let collection = store.create(&CollectionConfig::new(info.width() as usize, Metric::Cosine).name("paragraphs"))?;
    let payloads: Vec<Option<String>> = pieces.iter().map(|piece| Some(format!("{{\"text\": {}}}", quoted(piece)))).collect();
    collection.add(&Rows::new(info.width() as usize, &vectors).payloads(&payloads))?;
    let fingerprint = info.fingerprint().to_owned();
    store.set_model("paragraphs", &StoreModel { name: info.name().to_owned(), fingerprint, ..Default::default() })?;
    println!("{} paragraphs embedded", pieces.len());
    Ok(collection)
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let escape = |letter: char| match letter {
        '"' | '\\' => format!("\\{letter}"),
        control if (control as u32) < 0x20 => format!("\\u{:04x}", control as u32),
        other => other.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn answer(decoder: &Model, context: &str, question: &str) -> Result<(), Box<dyn Error>> {
    let asked = format!("{context}\n\nQuestion: {question}");
    let tokens = if decoder.info()?.has_chat() {
        decoder.chat_tokens(&[("system", "Answer from the text."), ("user", &asked)], true)?
    } else {
        decoder.tokenize(&format!("{asked}\nAnswer:"), TokenFlags::default())?
    };
    let mut session = decoder.session()?;
    session.feed(&tokens)?;
    let mut print = |text: &str| {
        print!("{text}");
        let _ = std::io::stdout().flush();
        ControlFlow::Continue(())
    };
    session.generate(&Generation::default(), &mut print)?;
    println!();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [text_path, encoder_path, question, decoder @ ..] = arguments.as_slice() else {
        return Err("usage: rag TEXT.txt ENCODER.gguf \"QUESTION\" [DECODER.gguf]".into());
    };
    let device = Device::auto()?;
    let encoder = Model::open(encoder_path, &device)?;
    let text = std::fs::read_to_string(text_path)?;
    let store = Store::open(format!("{text_path}.db"), &device)?;
    let collection = paragraphs(&store, &encoder, &text)?;
    let kept = store.model("paragraphs")?;
    if kept.fingerprint != encoder.info()?.fingerprint() {
        return Err(format!("the paragraphs were embedded with {}; use that model or remove {text_path}.db", kept.name).into());
    }
    let vector = encoder.embed(&[question], None)?;
    let results = collection.query(&Query::new(&vector).nearest(PARAGRAPHS).fetch(Fetch::PAYLOADS))?;
    for hit in results.hits() {
        println!("{:.3} {}", hit.score(), hit.payload().unwrap_or(""));
    }
    if let Some(path) = decoder.first() {
        let context: Vec<&str> = results.hits().filter_map(|hit| hit.payload()).collect();
        answer(&Model::open(path, &device)?, &context.join("\n"), question)?;
    }
    Ok(())
}
