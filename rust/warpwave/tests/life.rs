//! What outlives what: every order in which things may be dropped, on other threads too.
#![cfg(all(feature = "store", feature = "model"))]
mod common;
use common::{cpu, reference, winds, Folder};
use warpwave::{
    Collection, CollectionConfig, DType, Device, Fetch, Fuse, Gguf, GgufValue, GgufWriter, GrammarKind, Matrix, Metric, Model,
    ModelOptions, QuantType, Quantized, Query, Results, Rows, Safetensors, Session, Store, StoreModel, Tensor, TokenFlags,
};

#[test]
fn results_stay_when_collection_and_device_are_gone() {
    let device = cpu();
    let collection = Collection::new(&device, 2, Metric::Cosine).unwrap();
    drop(device);
    collection.add(&Rows::new(2, &[1.0, 0.0]).ids(&["east"])).unwrap();
    let results = collection.query(&Query::new(&[1.0, 0.0]).fetch(Fetch::IDS)).unwrap();
    drop(collection);
    let results = std::thread::spawn(move || results).join().unwrap();
    assert_eq!(results.hits().next().unwrap().id(), Some("east"));
}

#[test]
fn tensors_and_matrices_stay_when_the_device_is_gone() {
    let device = cpu();
    let x = Tensor::from_slice(&device, &[1, 32], &[1.0f32; 32]).unwrap();
    let matrix = Quantized::from_f32(&device, QuantType::Q8_0, &[0.5; 64], 2, 32).unwrap();
    drop(device);
    let view = matrix.view(1, 1).unwrap();
    drop(matrix);
    let y = std::thread::spawn(move || view.matmul(&x).unwrap()).join().unwrap();
    assert_eq!((y.shape(), y.device_id().unwrap().as_str()), (&[1, 1][..], "cpu"));
}

#[test]
fn collections_stay_when_the_store_is_gone() {
    let folder = Folder::new("life");
    let store = Store::open(folder.join("a.db"), &cpu()).unwrap();
    let a = store.create(&CollectionConfig::new(2, Metric::L2).name("a")).unwrap();
    let again = store.collection("a").unwrap();
    store.index("a", "$.lang").unwrap();
    let model =
        StoreModel { name: "words".into(), fingerprint: "0123".into(), query_prefix: "query: ".into(), ..Default::default() };
    store.set_model("a", &model).unwrap();
    assert_eq!(store.model("a").unwrap(), model);
    assert!(store.set_model("a", &StoreModel { name: "n".repeat(128), ..model }).is_err());
    assert_eq!(store.list().unwrap().hits().next().unwrap().id(), Some("a"));
    store.backup(folder.join("b.db"), None).unwrap();
    store.check(None).unwrap();
    assert_eq!(store.info().unwrap().collections(), 1);
    store.create(&CollectionConfig::new(2, Metric::L2).name("c")).unwrap();
    store.rename_collection("c", "d").unwrap();
    store.drop_collection("d").unwrap();
    assert!(store.collection("d").is_err() && store.rename_collection("c", "e").is_err());
    drop(store);
    a.add(&Rows::new(2, &[1.0, 2.0])).unwrap();
    drop(a);
    assert_eq!(again.len(), 1);
}

#[test]
fn sessions_stay_when_the_model_is_gone() {
    let Some((folder, _)) = reference() else { return };
    let model = Model::open(folder.join("decoder.gguf"), &cpu()).unwrap();
    let (mut a, mut b) = (model.session().unwrap(), model.session().unwrap());
    assert!(model.chat(&[("user", "a fox")]).is_err() && model.chat_tokens(&[("user", "a fox")], true).is_err()); // it has no template
    a.feed(&[1, 2]).unwrap();
    a.save(folder.join("a.session")).unwrap();
    let mut loaded = model.load_session(folder.join("a.session")).unwrap();
    drop(model);
    Session::feed_many(&mut [(&mut a, &[3]), (&mut b, &[1, 2, 3]), (&mut loaded, &[3])]).unwrap();
    let canceller = a.canceller();
    assert_eq!(a.logits().unwrap(), b.logits().unwrap());
    drop(a);
    canceller.cancel();
    b.truncate(1).unwrap();
    assert!(b.logits().is_err() && loaded.sample(&Default::default()).is_ok() && b.len() == 1);
}

#[test]
fn texts_are_what_their_grammar_says_and_templates_write_conversations() {
    use std::ops::ControlFlow;
    let Some((folder, _)) = reference() else { return };
    let template = "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}".to_owned();
    let options = ModelOptions { chat_template: Some(template), ..Default::default() };
    let model = Model::open_with(folder.join("decoder.gguf"), &cpu(), &options, None).unwrap();
    assert!(model.info().unwrap().has_chat());
    assert_eq!(model.chat(&[("user", "a fox")]).unwrap(), "user: a fox ");
    let mut session = model.session().unwrap();
    session.feed(&model.tokenize("dogs", TokenFlags::default()).unwrap()).unwrap();
    let mut grammar = model.grammar(GrammarKind::Gbnf, r#"root ::= " fox" " fox""#).unwrap();
    let token = session.sample_with(&Default::default(), &mut grammar).unwrap();
    assert!(grammar.accept(-1).is_err());
    grammar.accept(token).unwrap();
    let mut heard = String::new();
    let mut listen = |text: &str| {
        heard.push_str(text);
        ControlFlow::Continue(())
    };
    let mut fresh = model.grammar(GrammarKind::Gbnf, r#"root ::= " fox" " fox""#).unwrap();
    drop(model);
    session.generate_with(&Default::default(), &mut fresh, &mut listen).unwrap();
    assert_eq!(heard, " fox fox");
}

#[test]
fn a_gguf_file_is_written_and_read() {
    let folder = Folder::new("gguf");
    let path = folder.join("a.gguf");
    let mut writer = GgufWriter::new().unwrap();
    writer.value("general.name", GgufValue::Text("tiny")).unwrap();
    writer.value("a.texts", GgufValue::Texts(&["x", "", "yz"])).unwrap();
    writer.value("a.list", GgufValue::I32s(&[3, -4])).unwrap();
    writer.value("a.half", GgufValue::F32(0.5)).unwrap();
    writer.value("a.yes", GgufValue::Bool(true)).unwrap();
    assert!(writer.value("a.yes", GgufValue::U32(1)).is_err() && writer.tensor("t", QuantType::F32, &[1; 9]).is_err());
    writer.tensor("w", QuantType::F32, &[4, 2]).unwrap();
    writer.open(&path).unwrap();
    writer.data(&[0u8; 16]).unwrap();
    writer.data(&[1.5f32; 4].map(f32::to_le_bytes).concat()).unwrap();
    writer.finish().unwrap();

    let file = Gguf::open(&path).unwrap();
    assert_eq!((file.text("general.name").unwrap(), file.texts("a.texts").unwrap()), ("tiny", vec!["x", "", "yz"]));
    assert_eq!((file.i64s("a.list").unwrap(), file.f64("a.half").unwrap()), (vec![3, -4], 0.5));
    assert!(file.bool("a.yes").unwrap() && file.u64("a.list").is_err() && file.f64s("a.none").is_err());
    assert!(file.keys().any(|key| key.unwrap() == "a.half"));
    let tensor = file.tensors().next().unwrap().unwrap();
    assert_eq!((tensor.name(), tensor.shape(), tensor.quant_type()), ("w", &[4, 2][..], Some(QuantType::F32)));
    assert_eq!(tensor.data().unwrap().len(), 32);
    let device = cpu();
    let matrix = file.load(file.find_tensor("w").unwrap(), &device, None).unwrap();
    let all = file.load_all(&device, None).unwrap();
    let joined = file.load_joined(&[0, 0], &device, None).unwrap();
    drop(file);
    assert_eq!(matrix.read_f32(1, 1).unwrap(), [1.5; 4]);
    assert_eq!(all[0].as_ref().unwrap().get_rows(&[1, 0]).unwrap()[..5], [1.5, 1.5, 1.5, 1.5, 0.0]);
    assert_eq!(joined.info().unwrap().rows(), 4);
    assert!(matrix.read_f32(1, 2).is_err() && matrix.read_blocks(-1, 1).is_err());
}

#[test]
fn files_of_vectors_and_tensors_are_written_and_read() {
    let folder = Folder::new("files");
    warpwave::write_matrix(folder.join("a.fbin"), &[1.0, 2.0, 3.0, 4.0], 2).unwrap();
    let matrix = Matrix::open(folder.join("a.fbin")).unwrap();
    assert_eq!((matrix.info().unwrap().rows(), matrix.read(1, 1).unwrap(), matrix.id(0)), (2, vec![3.0, 4.0], None));
    assert!(matrix.read(1, 2).is_err() && matrix.read(i64::MAX, 1).is_err() && Matrix::open(folder.join("a.png")).is_err());
    std::fs::write(folder.join("b.csv"), "name,x,y\neast,1,0\nnorth,0,1\n").unwrap();
    let named = Matrix::open_csv(folder.join("b.csv"), "name").unwrap();
    assert_eq!((named.id(1), named.id(2), named.read(0, 1).unwrap()), (Some("north"), None, vec![1.0, 0.0]));
    assert!(warpwave::write_matrix(folder.join("c.npy"), &[1.0], 2).is_err());

    let (x, y) = (Tensor::arange(&cpu(), DType::I64, 0.0, 6.0, 1.0).unwrap(), Tensor::zeros(&cpu(), DType::BF16, &[]).unwrap());
    let path = folder.join("a.safetensors");
    let turned = x.reshape(&[2, 3]).unwrap().transpose(0, 1).unwrap();
    warpwave::write_safetensors(&path, &[("x", &turned), ("y", &y)], &[("format", "test")]).unwrap();
    let file = Safetensors::open(&path).unwrap();
    assert_eq!((file.len(), file.metadata("format").unwrap()), (2, "test"));
    let mut listed: Vec<_> = file.tensors().map(|tensor| tensor.unwrap()).collect();
    listed.sort();
    assert_eq!(listed, [("x", vec![3, 2]), ("y", vec![])]);
    assert_eq!(file.load("x", &cpu()).unwrap().to_vec::<i64>().unwrap(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(Tensor::load_safetensors(&cpu(), &path, "y").unwrap().dtype(), DType::BF16);
    assert!(file.load("z", &cpu()).is_err() && file.metadata("none").is_err());
    assert!(warpwave::write_safetensors(&path, &[("x", &x), ("x", &y)], &[]).is_err());
}

#[test]
fn views_write_where_they_look() {
    let mut x = Tensor::arange(&cpu(), DType::F32, 0.0, 6.0, 1.0).unwrap();
    x.view_mut().reshape(&[2, 3]).unwrap().transpose(0, 1).unwrap().select(0, 1).unwrap().write(&[9.0f32, 8.0]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 9.0, 2.0, 3.0, 8.0, 5.0]);
    let doubled = x.affine(2.0, 0.0).unwrap();
    x.view_mut().copy_from(&doubled).unwrap();
    x.view_mut().slice(0, 0, 6, 5).unwrap().fill(-1.0f32).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [-1.0, 18.0, 4.0, 6.0, 16.0, -1.0]);
    let chained = x.reshape(&[2, 3]).unwrap().transpose(0, 1).unwrap().narrow(0, 0, 1).unwrap();
    assert_eq!((chained.shape(), chained.to_vec::<f32>().unwrap()), (&[1, 2][..], vec![-1.0, 6.0]));
    let wide = chained.broadcast_to(&[3, 2]).unwrap();
    assert_eq!(Tensor::cat(&[&wide, &chained], 0).unwrap().shape(), [4, 2]);
    let (values, indices) = x.sort(true).unwrap();
    assert_eq!((values.to_vec::<f32>().unwrap()[0], indices.to_vec::<u32>().unwrap()[0]), (18.0, 1));
    assert!(x.view_mut().fill(1u8).is_err() && x.view_mut().write(&[1.0f32]).is_err());
}

#[test]
fn what_threads_may_share_is_what_the_headers_say() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Device>();
    shared::<Collection>();
    shared::<Store>();
    shared::<Results>();
    shared::<Tensor>();
    shared::<Quantized>();
    shared::<Gguf>();
    shared::<Matrix>();
    shared::<Safetensors>();
    shared::<Model>();
    shared::<warpwave::Canceller>();
    shared::<warpwave::Error>();
    shared::<Query<'_>>();
    shared::<Rows<'_>>();
    sent::<Session>();
    sent::<GgufWriter>();
    sent::<warpwave::Grammar>();
    drop(winds());
}

#[test]
fn texts_are_found_by_their_words() {
    let folder = Folder::new("texts");
    let store = Store::open(folder.join("a.db"), &cpu()).unwrap();
    let collection = store.create(&CollectionConfig::new(2, Metric::Cosine).name("a")).unwrap();
    let texts = [Some("the quick fox"), None, Some("a lazy dog")];
    collection.add(&Rows::new(2, &[1.0, 0.0, 0.9, 0.1, 0.0, 1.0]).ids(&["fox", "none", "dog"]).texts(&texts)).unwrap();
    let results = collection.query(&Query::words(&["dog"]).nearest(3).fetch(Fetch::IDS | Fetch::TEXTS)).unwrap();
    let found: Vec<_> = results.hits().map(|hit| (hit.id(), hit.text())).collect();
    assert_eq!(found, [(Some("dog"), Some("a lazy dog"))]);
    let hybrid = Query::new(&[1.0, 0.0])
        .nearest(3)
        .hybrid_with(&["dog"], Fuse { weights: vec![0.0, 1.0], ..Default::default() }, 10)
        .fetch(Fetch::IDS);
    let results = collection.query(&hybrid).unwrap();
    let best = results.hits().next().unwrap();
    assert_eq!(best.id(), Some("dog"));
    assert_eq!(best.parts().unwrap()[1].unwrap().rank, 1);
    assert!(collection.query(&Query::new(&[1.0, 0.0]).hybrid(&["a", "b"])).is_err());
    assert!(winds().query(&Query::words(&["dog"])).is_err());
}

#[cfg(feature = "text")]
#[test]
fn collections_of_text_embed_cut_and_find() {
    use warpwave::{Chunking, Documents, TextCollection, TextConfig, TextMode, TextQuery, TextRows, VectorType};
    let Some((folder, _)) = reference() else { return };
    let device = cpu();
    let (store, model) =
        (Store::open(folder.join("t.db"), &device).unwrap(), Model::open(folder.join("encoder.gguf"), &device).unwrap());
    assert!(TextCollection::open(&store, "t", &model, &TextConfig::default()).is_err(), "it does not exist");
    let config = TextConfig { create: Some((Metric::Cosine, VectorType::F32)), query_prefix: Some("a "), ..Default::default() };
    let texts = TextCollection::open(&store, "t", &model, &config).unwrap();
    texts.add(&TextRows::new(&["a fox", "dogs"]).ids(&["fox", "dogs"]).payloads(&[Some("{}"), None]), None).unwrap();
    assert!(texts.add(&TextRows::new(&["a", "b"]).ids(&["x"]), None).is_err());
    texts.upsert(&TextRows::new(&["dogs dogs"]).ids(&["dogs"]), None).unwrap();
    let results = texts.search(&TextQuery::new(&["fox"])).unwrap();
    assert_eq!((results.hits().len(), results.hits().next().unwrap().text()), (2, Some("a fox")));
    let words = TextQuery::new(&["dogs"]).mode(TextMode::Words).query(Query::without_vectors().nearest(1).fetch(Fetch::IDS));
    assert_eq!(texts.search(&words).unwrap().hits().next().unwrap().id(), Some("dogs"));

    let ranker = Model::open(folder.join("ranker.gguf"), &device).unwrap();
    let reranked = texts.search(&TextQuery::new(&["fox"]).rerank(&ranker, 2)).unwrap();
    let list: Vec<&str> = reranked.hits().filter_map(|hit| hit.text()).collect();
    assert_eq!((list.len(), ranker.rerank("fox", &list, None).unwrap()), (2, reranked.scores().to_vec()));
    assert!(reranked.scores()[0] >= reranked.scores()[1]);
    assert!(texts.search(&TextQuery::new(&["fox"]).rerank(&model, 2)).is_err(), "an encoder does not rerank");

    let how = Chunking { tokens: 6, overlap: 1 };
    let document = "A fox. A dog. A fox. A dog. A fox. A dog.";
    let chunks = model.chunks(document, &how).unwrap();
    assert!(chunks.len() > 1 && chunks[0].start == 0 && chunks.last().unwrap().end == document.len());
    let documents = Documents::new(&[document], &["d"]).payloads(&[Some(r#"{"year": 1}"#)]).chunking(how);
    assert_eq!(texts.add_documents(&documents, None).unwrap(), chunks.len());
    assert_eq!(texts.upsert_documents(&documents, None).unwrap(), chunks.len());
    assert_eq!(texts.collection().len(), 2 + chunks.len());
    let query = TextQuery::new(&["dog"]).hybrid(Fuse::default(), 5).expand(1);
    let results = texts.search(&query.clone().query(Query::without_vectors().nearest(1).filter(r#"{"year": 1}"#))).unwrap();
    assert!(results.hits().next().unwrap().text().unwrap().len() > chunks[0].len());
    let grouped = texts.search(&query.grouped(warpwave::Grouping::new("source"))).unwrap();
    assert_eq!(grouped.hits().len(), 1);
}
