//! Models: text in, embeddings or text out.
use std::ffi::c_char;
use std::fmt;
use std::path::Path;
use std::ptr;

use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::device::Device;
use crate::error::{call, number, Error, Result, Status};
use crate::handle::Handle;
use crate::quant::{Activations, QuantType};
use crate::session::{Grammar, GrammarKind, Session};
use crate::text::{with_path, with_text, Texts};

c_enum! {
    /// What a model does.
    ModelKind(ww_model_kind) {
        /// Embeds texts.
        Encoder = WW_MODEL_ENCODER,
        /// Continues texts.
        Decoder = WW_MODEL_DECODER,
    }
}

c_enum! {
    /// How the vectors of a text's tokens are combined.
    Pooling(ww_pooling) {
        /// Not at all.
        None = WW_POOLING_NONE,
        /// Their mean.
        Mean = WW_POOLING_MEAN,
        /// The first.
        Cls = WW_POOLING_CLS,
        /// The last.
        Last = WW_POOLING_LAST,
        /// A head that returns a score.
        Rank = WW_POOLING_RANK,
    }
}

info! {
    /// Description of a model.
    ModelInfo(ww_model_info) {
        /// Encoder or decoder.
        value kind: ModelKind,
        /// `"llama"`, `"bert"`
        text architecture,
        /// Its name.
        text name,
        /// Its licence.
        text licence,
        /// `"gpt2"`, `"llama"`, `"bert"`; `"none"`: it takes tokens only.
        text tokenizer,
        /// The device's name.
        text device,
        /// A fingerprint of the metadata, shapes and samples of all weights: it differs between files.
        text fingerprint,
        /// The number of weights.
        count parameters: i64,
        /// Bytes of the weights on the device.
        count weight_bytes: i64,
        /// Of these, bytes in the file's own pages, which all processes share.
        count mapped_bytes: i64,
        /// Bytes per 256 tokens of a session.
        count cache_bytes: i64,
        /// The size of the vocabulary.
        count vocabulary: i64,
        /// The maximum number of tokens in a text.
        count context: i64,
        /// Layers.
        count layers: i32,
        /// Numbers per embedding.
        count width: i32,
        /// The width of the feed-forward network.
        count hidden: i32,
        /// Attention heads.
        count heads: i32,
        /// Key heads.
        count key_heads: i32,
        /// The size of a head.
        count head_size: i32,
        /// The sliding window of attention, or 0.
        count window: i32,
        /// How the vectors of tokens are combined.
        value pooling: Pooling,
        /// The token that starts a text, or -1.
        count bos: i32,
        /// The token that ends a text, or -1.
        count eos: i32,
        /// Whether [`Model::chat`] supports its template.
        flag has_chat,
        /// Whether [`Model::embed`] works.
        flag embeds,
        /// Whether [`Model::rerank`] works.
        flag reranks,
    }
}

/// How to open a model.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// How activations are stored; coded by default.
    pub activations: Option<Activations>,
    /// The type of keys and values in sessions: f16 by default, f32 or q8_0.
    pub cache: Option<QuantType>,
    /// The maximum number of tokens in a session; by default the model's own maximum.
    pub context: Option<i64>,
    /// A Jinja template for [`Model::chat`] instead of the file's.
    pub chat_template: Option<String>,
    /// Whether a CPU copies f32, f16 and bf16 weights, which it otherwise uses where the file has them. Replace such a file by
    /// renaming another over it.
    pub copy_weights: bool,
}

/// Options of tokenization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenFlags {
    /// Names of special tokens count as text.
    pub plain: bool,
    /// No tokens are added at the start and end.
    pub no_add: bool,
}

/// A model on a device. Any number of threads may use it; it computes one call at a time. Its results have the same bits on
/// every device, alone or in a batch.
///
/// ```no_run
/// use warpwave::{Device, Model};
///
/// let model = Model::open("all-MiniLM-L6-v2.gguf", &Device::auto()?)?;
/// let vectors = model.embed(&["a text", "another"], None)?;
/// assert_eq!(vectors.len(), 2 * model.info()?.width() as usize);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Model(Handle<sys::ww_model>);

impl Model {
    /// Opens a GGUF file, or a folder with config.json, tokenizer.json and safetensors.
    pub fn open(path: impl AsRef<Path>, device: &Device) -> Result<Self> {
        Model::open_with(path, device, &ModelOptions::default(), None)
    }

    /// Opens a model with options; `progress` counts bytes.
    pub fn open_with(
        path: impl AsRef<Path>,
        device: &Device,
        options: &ModelOptions,
        progress: Option<Progress<'_>>,
    ) -> Result<Self> {
        let mut raw = sys::ww_model_options::default();
        if let Some(activations) = options.activations {
            raw.activations = activations.raw();
        }
        if let Some(cache) = options.cache {
            raw.cache = cache.raw();
        }
        if let Some(context) = options.context {
            raw.context = context;
        }
        raw.copy_weights = options.copy_weights.into();
        let template = Texts::new([options.chat_template.as_deref()]);
        raw.chat_template = template.pointers("the chat template")?[0];
        with_path(path.as_ref(), |path| {
            with_progress(progress, |told, user| {
                (raw.progress, raw.progress_user) = (told, user);
                // SAFETY: the device is open; the path, the options and the callback live until the call returns.
                Handle::make(|model| unsafe { sys::ww_model_open(path, device.raw(), &raw, model) })
            })
        })
        .map(Model)
    }

    pub(crate) fn raw(&self) -> *mut sys::ww_model {
        self.0.raw()
    }

    /// Describes the model.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut info = sys::ww_model_info::default();
        // SAFETY: the model is open and the struct is initialized.
        call(|| unsafe { sys::ww_model_describe(self.raw(), &mut info) }).map(|()| ModelInfo(info))
    }

    /// Returns the tokens of a text.
    pub fn tokenize(&self, text: &str, flags: TokenFlags) -> Result<Vec<i32>> {
        let bit = |set: bool, flag: sys::ww_token_flags| if set { flag as u32 } else { 0 };
        let bits = bit(flags.plain, sys::WW_TOKENS_PLAIN) | bit(flags.no_add, sys::WW_TOKENS_NO_ADD);
        // SAFETY: the model is open, the text has this many bytes, and there is room for `capacity` tokens.
        filled(0, |ids, capacity, count| unsafe {
            sys::ww_model_tokenize(self.raw(), text.as_ptr().cast(), text.len(), bits, ids, capacity, count)
        })
    }

    /// Returns the text of tokens, without the special ones, as bytes: it may end inside a character.
    pub fn detokenize(&self, ids: &[i32]) -> Result<Vec<u8>> {
        // SAFETY: the model is open, there are this many tokens, and room for `capacity` bytes.
        filled(0u8, |text, capacity, bytes| unsafe {
            sys::ww_model_detokenize(self.raw(), ids.as_ptr(), ids.len(), text.cast(), capacity, bytes)
        })
    }

    /// Returns whether a token ends a text or a turn.
    pub fn token_ends(&self, token: i32) -> bool {
        // SAFETY: the model is open; any number may be given.
        unsafe { sys::ww_model_token_ends(self.raw(), token) != 0 }
    }

    /// Formats a conversation of roles (`"system"`, `"user"`, `"assistant"`) and texts with the model's chat template, up to
    /// where the assistant starts. Tokenize the result with `no_add`.
    pub fn chat(&self, messages: &[(&str, &str)]) -> Result<String> {
        let text = with_messages(messages, |raw| {
            // SAFETY: the model is open, there are this many messages, and room for `capacity` bytes.
            filled(0u8, |text, capacity, bytes| unsafe {
                sys::ww_model_chat(self.raw(), raw.as_ptr(), raw.len(), text.cast(), capacity, bytes)
            })
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the tokens of such a conversation, for a session. With `plain`, names of special tokens in messages count as
    /// text, so that no message can end a turn.
    pub fn chat_tokens(&self, messages: &[(&str, &str)], plain: bool) -> Result<Vec<i32>> {
        let flags = if plain { sys::WW_TOKENS_PLAIN as u32 } else { 0 };
        with_messages(messages, |raw| {
            // SAFETY: the model is open, there are this many messages, and room for `capacity` tokens.
            filled(0, |ids, capacity, count| unsafe {
                sys::ww_model_chat_tokens(self.raw(), raw.as_ptr(), raw.len(), flags, ids, capacity, count)
            })
        })
    }

    /// Embeds texts: one vector of `width` numbers and length 1 per text, one after the other. `progress` counts texts. The
    /// model's default prompt, if it has one, is put before each text.
    pub fn embed<T: AsRef<str>>(&self, texts: &[T], progress: Option<Progress<'_>>) -> Result<Vec<f32>> {
        self.embed_with(texts, None, progress).map(|(vectors, _)| vectors)
    }

    /// Embeds texts with one of the model's prompts before each, `"query"` or `"document"` for example; `""` is none, and `None`
    /// the default. Also returns how many texts were longer than the context, so that their ends are not in their vectors.
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: &[T],
        prompt: Option<&str>,
        progress: Option<Progress<'_>>,
    ) -> Result<(Vec<f32>, u64)> {
        let (pointers, bytes) = texts_of(texts);
        let mut vectors = vec![0.0; texts.len() * self.info()?.width() as usize];
        let mut cut = 0i64;
        let (first, sizes, count, out) = (pointers.as_ptr(), bytes.as_ptr(), texts.len(), vectors.as_mut_ptr());
        with_text(prompt.unwrap_or(""), "the prompt", |name| {
            with_progress(progress, |told, user| {
                let how = sys::ww_embedding {
                    struct_size: std::mem::size_of::<sys::ww_embedding>(),
                    prompt: if prompt.is_some() { name } else { ptr::null() },
                    progress: told,
                    progress_user: user,
                    cut: &mut cut,
                };
                // SAFETY: each text has this many bytes; there is room for a vector of each; `how` lives during the call.
                call(|| unsafe { sys::ww_model_embed(self.raw(), first, sizes, count, &how, out) })
            })
        })?;
        Ok((vectors, cut as u64))
    }

    /// Embeds texts given as tokens.
    pub fn embed_tokens<T: AsRef<[i32]>>(&self, texts: &[T]) -> Result<Vec<f32>> {
        let ids: Vec<i32> = texts.iter().flat_map(|text| text.as_ref()).copied().collect();
        let counts: Vec<usize> = texts.iter().map(|text| text.as_ref().len()).collect();
        let mut vectors = vec![0.0; texts.len() * self.info()?.width() as usize];
        // SAFETY: the counts add up to the ids; there is room for a vector of each text.
        call(|| unsafe {
            sys::ww_model_embed_tokens(self.raw(), ids.as_ptr(), counts.as_ptr(), counts.len(), vectors.as_mut_ptr())
        })?;
        Ok(vectors)
    }

    /// Scores how well each text answers a query; larger is better. A score is a logit: 1 / (1 + exp(-score)) is a probability.
    /// The model reads query and text together, which is slower and better than comparing embeddings, so use it for the best
    /// hits of a search. `progress` counts texts. Refuses a model that cannot rerank ([`ModelInfo::reranks`]).
    ///
    /// ```no_run
    /// use warpwave::{Device, Model};
    ///
    /// let model = Model::open("bge-reranker-base.gguf", &Device::auto()?)?;
    /// let texts = ["Rice is boiled in water.", "Foxes hunt at night."];
    /// let scores = model.rerank("how do I cook rice?", &texts, None)?;
    /// assert!(scores[0] > scores[1]);
    /// # Ok::<(), warpwave::Error>(())
    /// ```
    pub fn rerank<T: AsRef<str>>(&self, query: &str, texts: &[T], progress: Option<Progress<'_>>) -> Result<Vec<f32>> {
        let (pointers, bytes) = texts_of(texts);
        let mut scores = vec![0.0; texts.len()];
        with_text(query, "the query", |query| {
            with_progress(progress, |told, user| {
                let (first, sizes, count, out) = (pointers.as_ptr(), bytes.as_ptr(), texts.len(), scores.as_mut_ptr());
                // SAFETY: the query ends with a NUL, each text has this many bytes, and there is room for a score of each.
                call(|| unsafe { sys::ww_model_rerank(self.raw(), query, first, sizes, count, out, told, user) })
            })
        })?;
        Ok(scores)
    }

    /// Creates a session without tokens. Refuses an encoder. The session keeps the model open.
    pub fn session(&self) -> Result<Session> {
        // SAFETY: the model is open.
        Session::make(self.vocabulary()?, |session| unsafe { sys::ww_session_create(self.raw(), session) })
    }

    /// Creates a grammar, at the start of a text, from GBNF or a JSON schema.
    pub fn grammar(&self, kind: GrammarKind, text: &str) -> Result<Grammar> {
        let (first, bytes) = (text.as_ptr().cast(), text.len());
        // SAFETY: the model is open, and the text has this many bytes.
        Grammar::make(|grammar| unsafe { sys::ww_grammar_create(self.raw(), kind.raw(), first, bytes, grammar) })
    }

    /// Loads a session from a file that [`Session::save`] wrote.
    pub fn load_session(&self, path: impl AsRef<Path>) -> Result<Session> {
        with_path(path.as_ref(), |path| {
            // SAFETY: the model is open, the path lives until the call returns.
            Session::make(self.vocabulary()?, |session| unsafe { sys::ww_session_load(self.raw(), path, session) })
        })
    }

    fn vocabulary(&self) -> Result<usize> {
        number(self.info()?.vocabulary(), "the size of the vocabulary")
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Ok(info) => info.fmt(out),
            Err(error) => write!(out, "Model({error})"),
        }
    }
}

/// Returns the addresses of texts, and their lengths in bytes.
fn texts_of<T: AsRef<str>>(texts: &[T]) -> (Vec<*const c_char>, Vec<usize>) {
    texts.iter().map(|text| (text.as_ref().as_ptr().cast(), text.as_ref().len())).unzip()
}

/// Returns the first `dimensions` numbers of each vector of `width` numbers, scaled to length 1 again. Embeddings of models
/// trained for this (Matryoshka) stay useful.
///
/// ```
/// let short = warpwave::shorten_embeddings(&[0.6, 0.0, 0.8, 0.0, 1.0, 0.0], 3, 2)?;
/// assert_eq!(short, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), warpwave::Error>(())
/// ```
pub fn shorten_embeddings(vectors: &[f32], width: usize, dimensions: usize) -> Result<Vec<f32>> {
    if width == 0 || vectors.len() % width != 0 {
        let message = format!("{} numbers are not vectors of {width}", vectors.len());
        return Err(Error::new(Status::DimensionMismatch, message));
    }
    let (mut kept, count) = (vectors.to_vec(), vectors.len() / width);
    let (width, size) = (number(width, "the width")?, number(dimensions, "the number of dimensions")?);
    // SAFETY: there are `count` vectors of `width` numbers.
    call(|| unsafe { sys::ww_embeddings_shorten(kept.as_mut_ptr(), count, width, size) })?;
    kept.truncate(count * dimensions);
    Ok(kept)
}

/// Calls a function with messages in C's form.
fn with_messages<R>(messages: &[(&str, &str)], function: impl FnOnce(&[sys::ww_chat_message]) -> Result<R>) -> Result<R> {
    let roles = Texts::new(messages.iter().map(|(role, _)| Some(role)));
    let texts = Texts::new(messages.iter().map(|(_, text)| Some(text)));
    let pairs = roles.pointers("a role")?.into_iter().zip(texts.pointers("a message")?);
    let raw: Vec<_> = pairs.map(|(role, text)| sys::ww_chat_message { role, text }).collect();
    function(&raw)
}

/// Returns a list that a call fills in, after asking for its length.
pub(crate) fn filled<T: Clone>(zero: T, function: impl Fn(*mut T, usize, *mut usize) -> sys::ww_status) -> Result<Vec<T>> {
    let mut count = 0;
    call(|| function(ptr::null_mut(), 0, &mut count))?;
    let mut list = vec![zero; count];
    if count > 0 {
        call(|| function(list.as_mut_ptr(), list.len(), &mut count))?;
    }
    Ok(list)
}
