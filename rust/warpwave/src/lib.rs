//! Exact vector search, tensors, quantized weights and models on AMD GPUs, NVIDIA GPUs and CPUs, with the same bits on all of
//! them: the safe interface to Warpwave's C library.
//!
//! ```
//! use warpwave::{Collection, Device, Fetch, Metric, Query, Rows};
//!
//! let device = Device::auto()?;
//! let collection = Collection::new(&device, 2, Metric::Cosine)?;
//! collection.add(&Rows::new(2, &[1.0, 0.0, 0.0, 1.0, 0.8, 0.6]).ids(&["east", "north", "northeast"]))?;
//!
//! let results = collection.query(&Query::new(&[0.9, 0.1]).nearest(2).fetch(Fetch::IDS))?;
//! let found: Vec<_> = results.hits().map(|hit| (hit.id().unwrap(), hit.score())).collect();
//! assert_eq!(found[0].0, "east");
//! # Ok::<(), warpwave::Error>(())
//! ```
//!
//! # Overview
//! [`Device`] is what computes. [`Collection`] holds vectors and answers a [`Query`] with [`Results`]. [`Store`] keeps
//! collections in a file, and a [`TextCollection`] keeps texts with the model that embeds them. [`Tensor`] computes;
//! [`Quantized`] multiplies with weights in ggml's formats, which [`Gguf`] reads. [`Model`] embeds texts, and its [`Session`]
//! continues them.
//!
//! # Errors
//! Every call that can fail returns [`Result`]. An [`Error`] has a [`Status`] for the program, a message for the user, and the
//! vendor's call and code if a driver failed. A call that fails changes nothing unless its documentation says so.
//!
//! # Threads
//! Objects that the C library allows threads to share are [`Sync`]: devices, collections, stores, results, quantized matrices,
//! GGUF files, models, and tensors for reading. A [`Session`], a [`Grammar`] and a [`GgufWriter`] are [`Send`] only. Writing to
//! a tensor takes a [`ViewMut`], which borrows it exclusively.
//!
//! # Callbacks
//! A [`Progress`] callback runs on the calling thread while the library holds its locks. A panic in it does not cross C: the
//! call is cancelled, and the panic resumes when C has returned. Calls of this crate inside a callback fail.
//!
//! # Features
//! `store`, `model` and `text`, on by default, need a C library that was built with them. `vendored` builds it; without it pkg-config finds it, or `WARPWAVE_LIB_DIR` names its folder. `serde_json` adds payloads and
//! filters as values, `half` the 16-bit types, `ndarray` conversion between tensors and arrays. These three are off by default.
#![forbid(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

#[macro_use]
mod macros;
mod multi;

#[cfg(feature = "ndarray")]
mod arrays;
mod callback;
mod collection;
mod config;
mod device;
mod element;
mod error;
mod field;
mod files;
mod gguf;
mod handle;
mod inside;
mod ivf;
#[cfg(feature = "serde_json")]
mod json;
mod map;
#[cfg(feature = "model")]
mod model;
mod operations;
mod quant;
mod query;
mod ranking;
mod results;
mod rows;
mod selection;
#[cfg(feature = "model")]
mod session;
mod sparse;
mod sparse_index;
#[cfg(feature = "store")]
mod store;
mod tensor;
mod text;
#[cfg(feature = "text")]
mod text_collection;

pub use callback::Progress;
pub use collection::{score, Collection};
pub use config::{CollectionConfig, CollectionInfo, DamageReport, Metric, RowPlace, Screen};
pub use device::{version, Device, DeviceInfo, MemberInfo, MemoryInfo};
pub use element::{DType, Element, VectorElement, VectorType};
pub use error::{Error, Result, Status, Vendor};
pub use files::{write_matrix, write_safetensors, Matrix, MatrixInfo, Safetensors};
pub use gguf::{Gguf, GgufInfo, GgufTensor, GgufValue, GgufWriter};
pub use ivf::{Calibration, IvfConfig, IvfInfo};
pub use map::{Map, MapConfig, MapInfo, MapOrigin};
#[cfg(feature = "model")]
pub use model::{shorten_embeddings, Model, ModelInfo, ModelKind, ModelOptions, Pooling, TokenFlags};
pub use multi::Multivector;
pub use operations::{Attention, AttentionType, Binary, Cmp, Conv, Math, Pool, Reduce, Unary};
pub use quant::{Activations, Product, QuantType, Quantized, QuantizedInfo};
pub use query::{Mask, Query, SearchStats, Value};
pub use ranking::{Diversity, Fuse, Fusion, Grouping};
pub use results::{Fetch, Hit, Hits, Part, Results};
pub use rows::Rows;
pub use selection::Selection;
#[cfg(feature = "model")]
pub use session::{Canceller, Generation, GenerationEnd, Grammar, GrammarKind, Sampling, Session};
pub use sparse::{SparseModifier, SparseVector};
pub use sparse_index::SparseIndex;
#[cfg(feature = "store")]
pub use store::{Store, StoreConfig, StoreInfo, StoreModel, Synchronous};
pub use tensor::{Tensor, View, ViewMut};
#[cfg(feature = "text")]
pub use text_collection::{Chunking, Documents, TextCollection, TextConfig, TextMode, TextQuery, TextRows};

/// The programs in the guide and the crate's README, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/from-rust.md")]
#[doc = include_str!("../README.md")]
struct Guide;
