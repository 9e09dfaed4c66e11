//! Makes and drops one of everything, N times, for a memory checker: `cycles N [FOLDER]`. FOLDER has decoder.gguf and encoder.gguf;
//! without it there are no models and no files. What is slow to make is made in every 10th round, or every 100th.
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use warpwave::{
    Chunking, Collection, CollectionConfig, DType, Device, Documents, Fetch, Gguf, GgufValue, GgufWriter, GrammarKind,
    IvfConfig, MapConfig, Mask, Matrix, Metric, Model, QuantType, Quantized, Query, Results, Rows, Safetensors, Selection,
    Store, Tensor, TextCollection, TextConfig, TextQuery, TextRows, VectorType,
};

/// What takes long to open, and is opened once for the handles that need it.
struct Models {
    folder: PathBuf,
    decoder: Model,
    encoder: Model,
    store: Store,
}

impl Models {
    fn open(folder: &Path, device: &Device) -> warpwave::Result<Self> {
        let model = |name| Model::open(folder.join(name), device);
        warpwave::write_matrix(folder.join("cycles.fbin"), &[1.0, 2.0], 2)?;
        let tensor = Tensor::from_slice(device, &[2], &[1.0f32, 2.0])?;
        warpwave::write_safetensors(folder.join("cycles.safetensors"), &[("x", &tensor)], &[])?;
        let models = Models {
            folder: folder.to_owned(),
            decoder: model("decoder.gguf")?,
            encoder: model("encoder.gguf")?,
            store: Store::open(folder.join("cycles.db"), device)?,
        };
        models.store.create(&CollectionConfig::new(2, Metric::L2).name("a"))?;
        models.texts(Some((Metric::Cosine, VectorType::F32)))?.add(&TextRows::new(&["a fox", "dogs"]), None)?;
        Ok(models)
    }

    fn texts(&self, create: Option<(Metric, VectorType)>) -> warpwave::Result<TextCollection<'_>> {
        TextCollection::open(&self.store, "t", &self.encoder, &TextConfig { create, ..Default::default() })
    }
}

/// What needs neither a model nor a file.
fn without_models(device: &Device, round: usize) -> warpwave::Result<()> {
    let opened = Device::open("cpu")?;
    let collection = Collection::new(&opened, 2, Metric::Cosine)?;
    drop(opened);
    let mut told = |_, _| ControlFlow::Continue(());
    let rows = Rows::new(2, &[1.0, 0.0, 0.0, 1.0]).ids(&["a", "b"]).payloads(&[Some(r#"{"n": 1}"#), None]);
    collection.add_with(&rows, Some(&mut told))?;
    let mask: Mask = [true, true].into_iter().collect();
    let vector = [1.0, round as f32];
    let query = Query::new(&vector).nearest(2).mask(&mask).fetch(Fetch::IDS | Fetch::VECTORS);
    let results: Results = collection.query(&query)?;
    assert_eq!(collection.select_count(&Selection::new().filter(r#"{"n": {"$gt": 0}}"#))?, 1);
    assert!(collection.query(&Query::new(&[1.0])).is_err());
    let map = collection.map(&MapConfig { steps: 2, ..Default::default() }, None)?;
    drop(collection);
    assert_eq!(map.len(), 2);
    assert_eq!(results.hits().filter_map(|hit| hit.id()).count(), 2);
    let mut x = Tensor::zeros(device, DType::F32, &[2, 32])?;
    x.view_mut().select(0, 1)?.fill(1.0f32)?;
    let y = x.transpose(0, 1)?.contiguous()?;
    let matrix = Quantized::from_f32(device, QuantType::Q8_0, &[0.5; 64], 2, 32)?;
    let product = matrix.view(0, 1)?.matmul(&x)?;
    assert_eq!((y.shape(), product.shape()), (&[32, 2][..], &[2, 1][..]));
    let mut writer = GgufWriter::new()?;
    writer.value("a", GgufValue::U32(1))?;
    drop(writer);
    assert!(Gguf::open("/nowhere/a.gguf").is_err() && Device::open("abacus").is_err());
    Ok(())
}

fn sessions(models: &Models) -> warpwave::Result<()> {
    let mut session = models.decoder.session()?;
    let fork = session.fork()?;
    drop((session.canceller(), session, fork));
    Ok(())
}

/// Handles on open models and an open store, an index, and files.
fn with_models(models: &Models, device: &Device) -> warpwave::Result<()> {
    let indexed = Collection::new(device, 2, Metric::L2)?;
    indexed.add(&Rows::new(2, &[1.0, 0.0, 0.0, 1.0]))?;
    indexed.build_ivf(&IvfConfig { nlist: 1, ..Default::default() }, None)?;
    assert_eq!(indexed.query(&Query::new(&[1.0, 0.0]).nearest(1).nprobe(1))?.rows(), [0]);
    let grammar = models.decoder.grammar(GrammarKind::Gbnf, r#"root ::= " fox""#)?;
    drop(grammar);
    let kept = models.store.collection("a")?;
    let texts = models.texts(None)?;
    assert_eq!((kept.len(), texts.collection().len()), (0, 2));
    let file = Gguf::open(models.folder.join("encoder.gguf"))?;
    let weight = file.load(file.find_tensor("token_embd.weight")?, device, None)?;
    drop(file);
    assert!(weight.info()?.rows() > 0);
    assert_eq!(Matrix::open(models.folder.join("cycles.fbin"))?.read(0, 1)?, [1.0, 2.0]);
    assert_eq!(Safetensors::open(models.folder.join("cycles.safetensors"))?.load("x", device)?.elements(), 2);
    Ok(())
}

/// What takes milliseconds, and tens of them under a memory checker: models, stores, and texts that are embedded.
fn slow(models: &Models, device: &Device) -> warpwave::Result<()> {
    let decoder = Model::open(models.folder.join("decoder.gguf"), device)?;
    let session = decoder.session()?;
    drop(decoder);
    let path = models.folder.join("cycle.db");
    let store = Store::open(&path, device)?;
    let texts = TextCollection::open(
        &store,
        "t",
        &models.encoder,
        &TextConfig { create: Some((Metric::Cosine, VectorType::F32)), ..Default::default() },
    )?;
    let chunking = Chunking { tokens: 6, overlap: 1 };
    texts.add_documents(&Documents::new(&["A fox. A dog. A fox. A dog."], &["d"]).chunking(chunking), None)?;
    let results = texts.search(&TextQuery::new(&["fox"]))?;
    drop(texts);
    let kept = store.collection("t")?;
    drop(store);
    assert!(session.is_empty() && results.hits().len() == kept.len());
    drop(kept);
    std::fs::remove_file(path).expect("the file of a store that is closed");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().unwrap_or_default().parse().map_err(|_| "usage: cycles N [FOLDER]")?;
    let device = Device::open("cpu")?;
    let models = arguments.next().map(|folder| Models::open(folder.as_ref(), &device)).transpose()?;
    for round in 0..rounds {
        without_models(&device, round)?;
        if let Some(models) = &models {
            sessions(models)?;
            if round % 10 == 0 {
                with_models(models, &device)?;
            }
            if round % 100 == 0 {
                slow(models, &device)?;
            }
        }
    }
    println!("{rounds} rounds");
    Ok(())
}
