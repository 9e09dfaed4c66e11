//! Makes and drops one of everything, N times, for a memory checker: `cycles N [DECODER.gguf]`.
use std::ops::ControlFlow;

use warpwave::{
    Collection, DType, Device, Fetch, Gguf, GgufValue, GgufWriter, MapConfig, Metric, Model, QuantType, Quantized, Query,
    Results, Rows, Tensor,
};

fn everything(device: &Device, model: Option<&Model>, round: usize) -> warpwave::Result<()> {
    let opened = Device::open("cpu")?;
    let collection = Collection::new(&opened, 2, Metric::Cosine)?;
    drop(opened);
    let mut told = |_, _| ControlFlow::Continue(());
    let rows = Rows::new(2, &[1.0, 0.0, 0.0, 1.0]).ids(&["a", "b"]).payloads(&[Some("{}"), None]);
    collection.add_with(&rows, Some(&mut told))?;
    let results: Results = collection.query(&Query::new(&[1.0, round as f32]).nearest(2).fetch(Fetch::IDS | Fetch::VECTORS))?;
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
    if let Some(model) = model {
        let mut session = model.session()?;
        let fork = session.fork()?;
        drop((session.canceller(), session, fork));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().unwrap_or_default().parse().map_err(|_| "usage: cycles N [DECODER.gguf]")?;
    let device = Device::open("cpu")?;
    let model = arguments.next().map(|path| Model::open(path, &device)).transpose()?;
    for round in 0..rounds {
        everything(&device, model.as_ref(), round)?;
    }
    println!("{rounds} rounds");
    Ok(())
}
