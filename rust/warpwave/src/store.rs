//! Stores: durable collections in a SQLite file, searched in memory.
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use warpwave_sys as sys;

use crate::callback::{with_progress, Loading, Progress};
use crate::collection::Collection;
use crate::config::{CollectionConfig, RowPlace};
use crate::device::Device;
use crate::error::{call, number, Error, Result, Status};
use crate::field::text_of;
use crate::handle::Handle;
use crate::results::Results;
use crate::text::{with_path, with_text};

c_enum! {
    /// When a write is acknowledged. The levels differ in what a power failure can destroy; a process that ends loses nothing.
    Synchronous(ww_synchronous) {
        /// No acknowledged write is lost.
        Full = WW_SYNCHRONOUS_FULL,
        /// The last writes may be lost, each of them completely.
        Normal = WW_SYNCHRONOUS_NORMAL,
        /// The file may be damaged: only for data that can be made again.
        Off = WW_SYNCHRONOUS_OFF,
    }
}

info! {
    /// Description of a store's file.
    StoreInfo(ww_store_info) {
        /// The highest format version of its collections.
        count format: i64,
        /// The number of collections.
        count collections: i64,
        /// The size of a page.
        count page_bytes: i64,
        /// Bytes of the database itself.
        count bytes_file: i64,
        /// Bytes of the write-ahead log.
        count bytes_wal: i64,
        /// Free pages inside of the file.
        count bytes_unused: i64,
        /// Vectors of its collections in this process's memory, about.
        count bytes_memory: i64,
        /// SQLite's version.
        text sqlite_version,
    }
}

/// The model that made the vectors of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreModel {
    /// Its name.
    pub name: String,
    /// [`ModelInfo::fingerprint`](crate::ModelInfo::fingerprint); it differs between models.
    pub fingerprint: String,
    /// Where its file was; may be empty.
    pub path: String,
    /// `"mean"`, `"cls"`, `"none"`; may be empty.
    pub pooling: String,
    /// Prepended to search texts; may be empty.
    pub query_prefix: String,
    /// Prepended to added texts; may be empty.
    pub document_prefix: String,
}

/// How to open a store.
#[derive(Clone, Default)]
pub struct StoreConfig {
    synchronous: Option<Synchronous>,
    busy_ms: Option<u32>,
    filter_ms: Option<u32>,
    page_bytes: u32,
    must_exist: bool,
    read_only: bool,
    exclusive: bool,
    memory_bytes: i64,
    rows: Option<RowPlace>,
    loading: Option<Arc<Loading>>,
}

impl StoreConfig {
    /// Creates the file if needed; every write is on disk when it returns.
    pub fn new() -> Self {
        Self::default()
    }

    /// When writes are acknowledged.
    pub fn synchronous(mut self, level: Synchronous) -> Self {
        self.synchronous = Some(level);
        self
    }

    /// How long a call waits for a lock, in milliseconds; 5000 by default.
    pub fn busy_ms(mut self, milliseconds: u32) -> Self {
        self.busy_ms = Some(milliseconds);
        self
    }

    /// Time limit for an SQL filter in milliseconds; 60000 by default, 0: none.
    pub fn filter_ms(mut self, milliseconds: u32) -> Self {
        self.filter_ms = Some(milliseconds);
        self
    }

    /// The size of a page of a new file: a power of two, 512 to 65536. The first collection chooses it by default.
    pub fn page_bytes(mut self, bytes: u32) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// Fails with [`Status::IoError`](crate::Status::IoError) if the file does not exist.
    pub fn must_exist(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// Opens the store read-only.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Keeps other processes from opening the file.
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Limits the memory for the vectors of all collections together: for one that is searched, those that
    /// were not searched for longest leave memory. 0, the default, is no limit.
    pub fn memory_bytes(mut self, bytes: i64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Chooses where collections that [`Store::collection`] opens keep their vectors.
    pub fn rows(mut self, place: RowPlace) -> Self {
        self.rows = Some(place);
        self
    }

    /// Called while vectors are loaded, with numbers of rows, on the thread whose call needed them. `ControlFlow::Break`
    /// cancels that call, and so does a panic, which is not passed on.
    pub fn loading(mut self, closure: impl Fn(i64, i64) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        self.loading = Some(Arc::new(Loading::new(closure)));
        self
    }

    fn raw(&self) -> Result<sys::ww_store_config> {
        let mut raw = sys::ww_store_config::default();
        if let Some(level) = self.synchronous {
            raw.synchronous = level.raw();
        }
        if let Some(milliseconds) = self.busy_ms {
            raw.busy_ms = number(milliseconds, "busy_ms")?;
        }
        if let Some(milliseconds) = self.filter_ms {
            raw.filter_ms = number(milliseconds, "filter_ms")?;
        }
        if let Some(place) = self.rows {
            raw.rows = place.raw();
        }
        raw.page_bytes = number(self.page_bytes, "page_bytes")?;
        (raw.must_exist, raw.read_only) = (i32::from(self.must_exist), i32::from(self.read_only));
        raw.exclusive = i32::from(self.exclusive);
        raw.memory_bytes = self.memory_bytes;
        if let Some(loading) = &self.loading {
            (raw.loading, raw.loading_user) = loading.raw();
        }
        Ok(raw)
    }
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StoreConfig")
            .field("must_exist", &self.must_exist)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// Collections in a file. A write that succeeds is on disk completely; a write that fails or is interrupted by a crash changes
/// nothing. Any number of threads, and other processes, may use the file at once. Collections keep the store open, so either
/// may be dropped first.
///
/// ```
/// use warpwave::{CollectionConfig, Device, Metric, Query, Rows, Store};
///
/// # let folder = std::env::temp_dir().join(format!("warpwave-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("words.db");
/// let store = Store::open(&path, &Device::open("cpu")?)?;
/// let words = store.create(&CollectionConfig::new(2, Metric::Cosine).name("words"))?;
/// words.add(&Rows::new(2, &[1.0, 0.0]).ids(&["east"]).payloads(&[Some(r#"{"lang": "en"}"#)]))?;
/// let query = Query::new(&[1.0, 1.0]).filter_sql("payload->>'$.lang' = :lang").bind(":lang", "en");
/// assert_eq!(words.query(&query)?.hits().len(), 1);
/// # drop((words, store));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Store {
    handle: Handle<sys::ww_store>,
    loading: Option<Arc<Loading>>, // dropped after the handle
}

impl Store {
    /// Opens the store in a file, and creates the file if needed. Collections are searched on the device.
    pub fn open(path: impl AsRef<Path>, device: &Device) -> Result<Self> {
        Store::open_with(path, device, &StoreConfig::new())
    }

    /// Opens a store with options.
    pub fn open_with(path: impl AsRef<Path>, device: &Device, config: &StoreConfig) -> Result<Self> {
        let raw = config.raw()?;
        let handle = with_path(path.as_ref(), |path| {
            // SAFETY: the device is open, the path and the config live until the call returns; the closure lives as long as
            // the store and its collections, each of which holds it.
            Handle::make(|store| unsafe { sys::ww_store_open(path, device.raw(), &raw, store) })
        })?;
        Ok(Store { handle, loading: config.loading.clone() })
    }

    #[cfg(feature = "text")]
    pub(crate) fn raw(&self) -> *mut sys::ww_store {
        self.handle.raw()
    }

    fn collection_of(&self, handle: Handle<sys::ww_collection>) -> Collection {
        Collection::of_store(handle, self.loading.clone().map(|loading| loading as Arc<dyn Send + Sync>))
    }

    /// Creates an empty collection with the config's name.
    pub fn create(&self, config: &CollectionConfig) -> Result<Collection> {
        // SAFETY: the store is open, the config lives until the call returns.
        config
            .with_raw(|config| Handle::make(|made| unsafe { sys::ww_store_create(self.handle.raw(), config, made) }))
            .map(|handle| self.collection_of(handle))
    }

    /// Opens an existing collection. The same collection may be open several times.
    pub fn collection(&self, name: &str) -> Result<Collection> {
        with_text(name, "the collection's name", |name| {
            // SAFETY: the store is open, the name lives until the call returns.
            Handle::make(|made| unsafe { sys::ww_store_collection(self.handle.raw(), name, made) })
        })
        .map(|handle| self.collection_of(handle))
    }

    /// Drops a collection with all its rows. Calls on open collections of that name fail from then on.
    pub fn drop_collection(&self, name: &str) -> Result<()> {
        // SAFETY: the store is open, the name lives until the call returns.
        with_text(name, "the collection's name", |name| call(|| unsafe { sys::ww_store_drop(self.handle.raw(), name) }))
    }

    /// Renames a collection. Calls on collections that are open under the old name fail from then on.
    pub fn rename_collection(&self, name: &str, to: &str) -> Result<()> {
        with_text(name, "the collection's name", |name| {
            // SAFETY: the store is open, both names live until the call returns.
            with_text(to, "the new name", |to| call(|| unsafe { sys::ww_store_rename(self.handle.raw(), name, to) }))
        })
    }

    /// Lists the collections by name: a hit's id is the name, its payload the description.
    pub fn list(&self) -> Result<Results> {
        // SAFETY: the store is open.
        Results::new(Handle::make(|results| unsafe { sys::ww_store_list(self.handle.raw(), results) })?)
    }

    /// Creates an index over a path such as `"$.lang"` in payloads.
    pub fn index(&self, collection: &str, path: &str) -> Result<()> {
        with_text(collection, "the collection's name", |collection| {
            // SAFETY: the store is open, both texts live until the call returns.
            with_text(path, "the path", |path| call(|| unsafe { sys::ww_store_index(self.handle.raw(), collection, path) }))
        })
    }

    /// Records the model that made a collection's vectors. Refuses a model that differs from the recorded one.
    pub fn set_model(&self, collection: &str, model: &StoreModel) -> Result<()> {
        let mut raw = sys::ww_store_model::default();
        let fields = [
            (&model.name, &mut raw.name[..]),
            (&model.fingerprint, &mut raw.fingerprint[..]),
            (&model.path, &mut raw.path[..]),
            (&model.pooling, &mut raw.pooling[..]),
            (&model.query_prefix, &mut raw.query_prefix[..]),
            (&model.document_prefix, &mut raw.document_prefix[..]),
        ];
        for (text, field) in fields {
            if text.len() >= field.len() {
                let message = format!("{text:?} has {} bytes; at most {} fit", text.len(), field.len() - 1);
                return Err(Error::new(Status::InvalidArgument, message));
            }
            for (place, byte) in field.iter_mut().zip(text.bytes()) {
                *place = byte as std::ffi::c_char;
            }
        }
        with_text(collection, "the collection's name", |collection| {
            // SAFETY: the store is open; the struct is initialized and its texts end with a NUL.
            call(|| unsafe { sys::ww_store_set_model(self.handle.raw(), collection, &raw) })
        })
    }

    /// Returns the recorded model of a collection; [`Status::NotFound`](crate::Status::NotFound) if there is none.
    pub fn model(&self, collection: &str) -> Result<StoreModel> {
        let mut raw = sys::ww_store_model::default();
        with_text(collection, "the collection's name", |collection| {
            // SAFETY: the store is open and the struct is initialized.
            call(|| unsafe { sys::ww_store_get_model(self.handle.raw(), collection, &mut raw) })
        })?;
        let text = |field: &[std::ffi::c_char]| text_of(field).to_owned();
        Ok(StoreModel {
            name: text(&raw.name),
            fingerprint: text(&raw.fingerprint),
            path: text(&raw.path),
            pooling: text(&raw.pooling),
            query_prefix: text(&raw.query_prefix),
            document_prefix: text(&raw.document_prefix),
        })
    }

    /// Copies a snapshot of the store to another file. `progress` counts pages.
    pub fn backup(&self, path: impl AsRef<Path>, progress: Option<Progress<'_>>) -> Result<()> {
        with_path(path.as_ref(), |path| {
            // SAFETY: the store is open, the path lives until the call returns.
            with_progress(progress, |told, user| call(|| unsafe { sys::ww_store_backup(self.handle.raw(), path, told, user) }))
        })
    }

    /// Reads everything and checks it. `progress` counts rows.
    pub fn check(&self, progress: Option<Progress<'_>>) -> Result<()> {
        // SAFETY: the store is open.
        with_progress(progress, |told, user| call(|| unsafe { sys::ww_store_check(self.handle.raw(), told, user) }))
    }

    /// Describes the file.
    pub fn info(&self) -> Result<StoreInfo> {
        let mut info = sys::ww_store_info::default();
        // SAFETY: the store is open and the struct is initialized.
        call(|| unsafe { sys::ww_store_describe(self.handle.raw(), &mut info) }).map(|()| StoreInfo(info))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => info.fmt(out),
            Err(error) => write!(out, "Store({error})"),
        }
    }
}
