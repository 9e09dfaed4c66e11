//! Collections of text: a store's collection together with the model that makes its vectors.
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::path::Path;
use std::ptr;

use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::collection::{given, Collection};
use crate::config::Metric;
use crate::element::VectorType;
use crate::error::{failed, number, Error, Result, Status};
use crate::handle::Handle;
use crate::model::{filled, Model};
use crate::query::Query;
use crate::ranking::{Diversity, Fuse, Grouping};
use crate::results::{Fetch, Results};
use crate::store::Store;
use crate::text::{with_text, Texts};

c_enum! {
    /// What a text is compared with.
    TextMode(ww_text_mode) {
        /// The vectors.
        Vector = WW_TEXT_VECTOR,
        /// The words of the texts.
        Words = WW_TEXT_WORDS,
        /// Both, fused into one list.
        Hybrid = WW_TEXT_HYBRID,
    }
}

/// How to open a collection of text.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextConfig<'a> {
    /// Creates a collection that does not exist with this metric and type.
    pub create: Option<(Metric, VectorType)>,
    /// Prepended to search texts, `"query: "` with some models. None: use the stored prefix.
    pub query_prefix: Option<&'a str>,
    /// Prepended to added texts. None: use the stored prefix.
    pub document_prefix: Option<&'a str>,
}

/// Texts to add.
#[derive(Clone, Debug)]
pub struct TextRows {
    texts: Texts,
    ids: Option<Texts>,
    payloads: Option<Texts>,
}

impl TextRows {
    /// These texts.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Self {
        TextRows { texts: Texts::of(texts), ids: None, payloads: None }
    }

    /// Sets an id for each text.
    pub fn ids<T: AsRef<str>>(mut self, ids: &[T]) -> Self {
        self.ids = Some(Texts::of(ids));
        self
    }

    /// Sets the payloads, JSON texts; None for texts without one.
    pub fn payloads<T: AsRef<str>>(mut self, payloads: &[Option<T>]) -> Self {
        self.payloads = Some(Texts::new(payloads.iter().map(Option::as_ref)));
        self
    }
}

/// How documents are split: into chunks of whole sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Maximum tokens per chunk.
    pub tokens: i64,
    /// Maximum tokens that a chunk shares with the previous one; less than `tokens`.
    pub overlap: i64,
}

impl Default for Chunking {
    /// 256 tokens, with an overlap of 32.
    fn default() -> Self {
        let raw = sys::ww_chunking::default();
        Chunking { tokens: raw.tokens, overlap: raw.overlap }
    }
}

impl Chunking {
    fn raw(&self) -> sys::ww_chunking {
        sys::ww_chunking { tokens: self.tokens, overlap: self.overlap, ..Default::default() }
    }
}

/// Documents to add: the chunks of one have the ids `SOURCE#0`, `SOURCE#1`, ... and payloads with their position in it.
#[derive(Clone, Debug)]
pub struct Documents {
    texts: Texts,
    sources: Texts,
    payloads: Option<Texts>,
    chunking: Option<Chunking>,
}

impl Documents {
    /// These texts, each with its source.
    pub fn new<T: AsRef<str>, S: AsRef<str>>(texts: &[T], sources: &[S]) -> Self {
        Documents { texts: Texts::of(texts), sources: Texts::of(sources), payloads: None, chunking: None }
    }

    /// Sets a JSON object per document, or None; the payloads of all its chunks contain its fields.
    pub fn payloads<T: AsRef<str>>(mut self, payloads: &[Option<T>]) -> Self {
        self.payloads = Some(Texts::new(payloads.iter().map(Option::as_ref)));
        self
    }

    /// Chooses how documents are split.
    pub fn chunking(mut self, how: Chunking) -> Self {
        self.chunking = Some(how);
        self
    }
}

/// Returns the addresses of one text per row, or of none.
fn beside(texts: Option<&Texts>, rows: usize, what: &str) -> Result<Option<Vec<*const std::ffi::c_char>>> {
    match texts {
        Some(texts) if texts.len() != rows => {
            Err(Error::new(Status::InvalidArgument, format!("{rows} texts, but {} times {what}", texts.len())))
        }
        texts => texts.map(|texts| texts.pointers(what)).transpose(),
    }
}

/// Returns the first address of a list, NULL for none.
fn first(list: &Option<Vec<*const std::ffi::c_char>>) -> *const *const std::ffi::c_char {
    list.as_ref().map_or(ptr::null(), |list| list.as_ptr())
}

/// A search for texts.
#[derive(Clone)]
pub struct TextQuery<'a> {
    texts: Texts,
    mode: TextMode,
    query: Query<'a>,
    fuse: Option<Fuse>,
    candidates: usize,
    diversity: Option<Diversity<'a>>,
    grouping: Option<Grouping<'a>>,
    expand: u16,
    rerank: Option<(&'a Model, usize)>,
}

impl<'a> TextQuery<'a> {
    /// The 10 nearest rows of each text, by vectors, with ids, payloads and texts.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Self {
        TextQuery {
            texts: Texts::of(texts),
            mode: TextMode::Vector,
            query: Query::without_vectors().fetch(Fetch::IDS | Fetch::PAYLOADS | Fetch::TEXTS),
            fuse: None,
            candidates: 0,
            diversity: None,
            grouping: None,
            expand: 0,
            rerank: None,
        }
    }

    /// Searches by vectors, words or both.
    pub fn mode(mut self, mode: TextMode) -> Self {
        self.mode = mode;
        self
    }

    /// Chooses how many hits, among which rows, and what is fetched, by a query from [`Query::without_vectors`].
    pub fn query(mut self, query: Query<'a>) -> Self {
        self.query = query;
        self
    }

    /// Searches by vectors and words with this fusion, of this many hits of each part (0: the library's choice).
    pub fn hybrid(mut self, fuse: Fuse, candidates: usize) -> Self {
        (self.mode, self.fuse, self.candidates) = (TextMode::Hybrid, Some(fuse), candidates);
        self
    }

    /// Chooses hits that differ from each other, from this many (0: the library's choice).
    pub fn diverse(mut self, how: Diversity<'a>, candidates: usize) -> Self {
        (self.diversity, self.candidates) = (Some(how), candidates);
        self
    }

    /// Groups the hits.
    pub fn grouped(mut self, how: Grouping<'a>) -> Self {
        self.grouping = Some(how);
        self
    }

    /// Returns a chunk's text together with this many chunks before and after it, at most 100.
    pub fn expand(mut self, chunks: u16) -> Self {
        self.expand = chunks;
        self
    }

    /// Reorders the best `hits` of each text (0: 100) with [`Model::rerank`], and keeps the k best of them.
    pub fn rerank(mut self, model: &'a Model, hits: usize) -> Self {
        self.rerank = Some((model, hits));
        self
    }
}

/// Texts searched by text: embedded by a model, and kept in a store that records the model. It borrows both. Any number of
/// threads may use it.
///
/// ```no_run
/// use warpwave::{Device, Documents, Metric, Model, Store, TextCollection, TextConfig, TextQuery, VectorType};
///
/// let device = Device::auto()?;
/// let (store, model) = (Store::open("notes.db", &device)?, Model::open("all-MiniLM-L6-v2.gguf", &device)?);
/// let config = TextConfig { create: Some((Metric::Cosine, VectorType::F32)), ..Default::default() };
/// let notes = TextCollection::open(&store, "notes", &model, &config)?;
/// notes.upsert_documents(&Documents::new(&[std::fs::read_to_string("notes.md").unwrap()], &["notes.md"]), None)?;
/// for hit in notes.search(&TextQuery::new(&["how do I cook rice?"]).expand(1))?.hits() {
///     println!("{:.3} {}", hit.score(), hit.text().unwrap_or(""));
/// }
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct TextCollection<'a> {
    collection: ManuallyDrop<Collection>, // the handle's: it ends with it
    handle: Handle<sys::ww_text>,
    _of: PhantomData<(&'a Store, &'a Model)>,
}

impl<'a> TextCollection<'a> {
    /// Opens a collection of the store with the model that made its vectors. Refuses another model.
    pub fn open(store: &'a Store, name: &str, model: &'a Model, config: &TextConfig<'_>) -> Result<Self> {
        let prefixes = Texts::new([config.query_prefix, config.document_prefix]);
        let pointers = prefixes.pointers("a prefix")?;
        let mut raw = sys::ww_text_config { opened: model.raw(), ..Default::default() };
        (raw.query_prefix, raw.document_prefix) = (pointers[0], pointers[1]);
        if let Some((metric, r#type)) = config.create {
            (raw.create, raw.metric, raw.r#type) = (1, metric.raw(), r#type.raw());
        }
        let handle = with_text(name, "the collection's name", |name| {
            // SAFETY: the store and the model are borrowed for as long as this lives; the name and the config live until the
            // call returns.
            Handle::make(|text| unsafe { sys::ww_text_open(store.raw(), name, &raw, text) })
        })?;
        // SAFETY: the handle is open. The collection that it gives belongs to it, and is not dropped here.
        let collection = Handle::adopt(unsafe { sys::ww_text_collection(handle.raw()) }).ok_or_else(failed)?;
        Ok(TextCollection { collection: ManuallyDrop::new(Collection::of_store(collection, None)), handle, _of: PhantomData })
    }

    /// Returns the collection, for everything that does not concern texts.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Adds all texts with their vectors, or none. `progress` counts texts.
    pub fn add(&self, rows: &TextRows, progress: Option<Progress<'_>>) -> Result<()> {
        self.write(rows, progress, sys::ww_text_add)
    }

    /// Adds like `add`, but a text whose id exists replaces that row.
    pub fn upsert(&self, rows: &TextRows, progress: Option<Progress<'_>>) -> Result<()> {
        self.write(rows, progress, sys::ww_text_upsert)
    }

    fn write(
        &self,
        rows: &TextRows,
        progress: Option<Progress<'_>>,
        function: unsafe extern "C" fn(*mut sys::ww_text, *const sys::ww_text_rows) -> sys::ww_status,
    ) -> Result<()> {
        let count = rows.texts.len();
        let texts = rows.texts.pointers("a text")?;
        let (ids, payloads) = (beside(rows.ids.as_ref(), count, "an id")?, beside(rows.payloads.as_ref(), count, "a payload")?);
        let mut raw =
            sys::ww_text_rows { texts: texts.as_ptr(), ids: first(&ids), payloads: first(&payloads), ..Default::default() };
        raw.count = number(count, "the number of texts")?;
        with_progress(progress, |told, user| {
            (raw.progress, raw.progress_user) = (told, user);
            // SAFETY: the collection is open; all lists have `count` entries and live until the call returns.
            crate::error::call(|| unsafe { function(self.handle.raw(), &raw) })
        })
    }

    /// Adds all documents in chunks, or none, and returns the number of chunks. `progress` counts chunks.
    pub fn add_documents(&self, documents: &Documents, progress: Option<Progress<'_>>) -> Result<usize> {
        self.write_documents(documents, progress, sys::ww_text_add_documents)
    }

    /// Adds like `add_documents`, but replaces documents with the same source.
    pub fn upsert_documents(&self, documents: &Documents, progress: Option<Progress<'_>>) -> Result<usize> {
        self.write_documents(documents, progress, sys::ww_text_upsert_documents)
    }

    fn write_documents(
        &self,
        documents: &Documents,
        progress: Option<Progress<'_>>,
        function: unsafe extern "C" fn(*mut sys::ww_text, *const sys::ww_documents, *mut i64) -> sys::ww_status,
    ) -> Result<usize> {
        let count = documents.texts.len();
        let texts = documents.texts.pointers("a text")?;
        let sources = beside(Some(&documents.sources), count, "a source")?;
        let payloads = beside(documents.payloads.as_ref(), count, "a payload")?;
        let chunking = documents.chunking.as_ref().map(Chunking::raw);
        let mut raw = sys::ww_documents { texts: texts.as_ptr(), sources: first(&sources), ..Default::default() };
        raw.payloads = first(&payloads);
        raw.chunking = chunking.as_ref().map_or(ptr::null(), |chunking| chunking);
        raw.count = number(count, "the number of documents")?;
        let chunks = with_progress(progress, |told, user| {
            (raw.progress, raw.progress_user) = (told, user);
            // SAFETY: as in write().
            given(|chunks| unsafe { function(self.handle.raw(), &raw, chunks) })
        })?;
        number(chunks, "the number of chunks")
    }

    /// Searches for texts.
    pub fn search(&self, query: &TextQuery<'_>) -> Result<Results> {
        let texts = query.texts.pointers("a text")?;
        if let Some(diversity) = &query.diversity {
            diversity.check(query.texts.len(), self.collection.info()?.dim() as usize)?;
        }
        let fuse = query.fuse.as_ref().map(|how| how.raw(2)).transpose()?;
        let diversity = query.diversity.as_ref().map(|how| how.raw(Metric::Cosine)).transpose()?;
        let mut raw = sys::ww_text_query { texts: texts.as_ptr(), mode: query.mode.raw(), ..Default::default() };
        raw.count = number(query.texts.len(), "the number of texts")?;
        raw.fuse = fuse.as_ref().map_or(ptr::null(), |fuse| fuse);
        raw.candidates = number(query.candidates, "the number of candidates")?;
        raw.diversity = diversity.as_ref().map_or(ptr::null(), |diversity| diversity);
        raw.expand = i32::from(query.expand);
        if let Some((model, hits)) = query.rerank {
            (raw.rerank, raw.reranked) = (model.raw(), number(hits, "the number of hits to rerank")?);
        }
        query.query.with_raw(|inner| {
            raw.query = inner;
            let mut search = |grouping: *const sys::ww_grouping| {
                raw.grouping = grouping;
                // SAFETY: the collection is open, and all that the struct points to lives until the call returns.
                Results::made(|results| unsafe { sys::ww_text_search(self.handle.raw(), &raw, results) })
            };
            match &query.grouping {
                None => search(ptr::null()),
                Some(grouping) => grouping.with_raw(|grouping| search(grouping)),
            }
        })
    }
}

impl fmt::Debug for TextCollection<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.collection.fmt(out)
    }
}

impl Model {
    /// Splits a document: returns the bytes of each chunk. Chunks cover every byte.
    pub fn chunks(&self, document: &str, how: &Chunking) -> Result<Vec<Range<usize>>> {
        let raw = how.raw();
        // SAFETY: the model is open, the document has this many bytes, and there is room for `capacity` chunks.
        let chunks = filled(sys::ww_chunk { start: 0, end: 0 }, |chunks, capacity, count| unsafe {
            sys::ww_text_chunks(self.raw(), document.as_ptr().cast(), document.len(), &raw, chunks, capacity, count)
        })?;
        Ok(chunks.into_iter().map(|chunk| chunk.start as usize..chunk.end as usize).collect())
    }

    /// Opens the model recorded with a store's collection, from its recorded path.
    pub fn open_kept(store: &Store, collection: &str, device: &crate::Device) -> Result<Self> {
        Model::open(Path::new(&store.model(collection)?.path), device)
    }
}
