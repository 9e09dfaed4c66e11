//! Models: text in, embeddings or text out.
use std::cell::Cell;
use std::ffi::c_char;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use warpwave_sys as sys;

use crate::callback::{with_progress, with_text_callback, Progress};
use crate::device::Device;
use crate::error::{call, number, Error, Result, Status};
use crate::handle::Handle;
use crate::quant::{Activations, QuantType};
use crate::text::{with_path, Texts};

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
    /// How the vectors of a text's tokens become one.
    Pooling(ww_pooling) {
        /// Not at all.
        None = WW_POOLING_NONE,
        /// Their mean.
        Mean = WW_POOLING_MEAN,
        /// The first.
        Cls = WW_POOLING_CLS,
    }
}

c_enum! {
    /// Why generating ended.
    GenerationEnd(ww_generation_end) {
        /// As many tokens as were asked for.
        Length = WW_GENERATION_LENGTH,
        /// The model ended its text.
        Eos = WW_GENERATION_EOS,
        /// The context is full.
        Context = WW_GENERATION_CONTEXT,
        /// The callback stopped it.
        Stopped = WW_GENERATION_STOPPED,
    }
}

info! {
    /// What a model is.
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
        /// Of metadata, shapes and samples of all weights: another file has another.
        text fingerprint,
        /// How many weights there are.
        count parameters: i64,
        /// The bytes of the weights on the device.
        count weight_bytes: i64,
        /// The bytes of 256 tokens of a session.
        count cache_bytes: i64,
        /// How many tokens there are.
        count vocabulary: i64,
        /// How many tokens a text may have.
        count context: i64,
        /// Layers.
        count layers: i32,
        /// Numbers in an embedding.
        count width: i32,
        /// Of the feed-forward network.
        count hidden: i32,
        /// Heads of attention.
        count heads: i32,
        /// Heads of keys.
        count key_heads: i32,
        /// The size of a head.
        count head_size: i32,
        /// The sliding window of attention, or 0.
        count window: i32,
        /// How the vectors of tokens become one.
        value pooling: Pooling,
        /// The token that begins a text, or -1.
        count bos: i32,
        /// The token that ends a text, or -1.
        count eos: i32,
        /// Whether [`Model::chat`] knows its template.
        flag has_chat,
    }
}

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// Coded by default.
    pub activations: Option<Activations>,
    /// Of keys and values in sessions: f16 by default, f32 or q8_0.
    pub cache: Option<QuantType>,
    /// Tokens that a session may hold; by default as many as the model was made for.
    pub context: Option<i64>,
}

/// How text becomes tokens, otherwise than usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenFlags {
    /// Names of special tokens are text.
    pub plain: bool,
    /// Nothing is added at the ends of the text.
    pub no_add: bool,
}

/// A model on a device. Any number of threads may use it; its computations happen one after the other. What it computes has the
/// same bits on every device, alone or in a batch.
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

    /// The same with options; `progress` counts bytes.
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
        with_path(path.as_ref(), |path| {
            with_progress(progress, |told, user| {
                (raw.progress, raw.progress_user) = (told, user);
                // SAFETY: the device is open; the path, the options and the callback live until the call returns.
                Handle::make(|model| unsafe { sys::ww_model_open(path, device.raw(), &raw, model) })
            })
        })
        .map(Model)
    }

    fn raw(&self) -> *mut sys::ww_model {
        self.0.raw()
    }

    /// Describes it.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut info = sys::ww_model_info::default();
        // SAFETY: the model is open and the struct is initialized.
        call(|| unsafe { sys::ww_model_describe(self.raw(), &mut info) }).map(|()| ModelInfo(info))
    }

    /// The tokens of a text.
    pub fn tokenize(&self, text: &str, flags: TokenFlags) -> Result<Vec<i32>> {
        let bit = |set: bool, flag: sys::ww_token_flags| if set { flag as u32 } else { 0 };
        let bits = bit(flags.plain, sys::WW_TOKENS_PLAIN) | bit(flags.no_add, sys::WW_TOKENS_NO_ADD);
        // SAFETY: the model is open, the text has this many bytes, and there is room for `capacity` tokens.
        filled(0, |ids, capacity, count| unsafe {
            sys::ww_model_tokenize(self.raw(), text.as_ptr().cast(), text.len(), bits, ids, capacity, count)
        })
    }

    /// The text of tokens, without the special ones, as bytes: it may end within a character.
    pub fn detokenize(&self, ids: &[i32]) -> Result<Vec<u8>> {
        // SAFETY: the model is open, there are this many tokens, and room for `capacity` bytes.
        filled(0u8, |text, capacity, bytes| unsafe {
            sys::ww_model_detokenize(self.raw(), ids.as_ptr(), ids.len(), text.cast(), capacity, bytes)
        })
    }

    /// Whether a token ends a text or a turn.
    pub fn token_ends(&self, token: i32) -> bool {
        // SAFETY: the model is open; any number may be given.
        unsafe { sys::ww_model_token_ends(self.raw(), token) != 0 }
    }

    /// A conversation, of roles (`"system"`, `"user"`, `"assistant"`) and texts, as the model's chat template writes it, up to
    /// where the assistant begins to speak. To be tokenized with `no_add`.
    pub fn chat(&self, messages: &[(&str, &str)]) -> Result<String> {
        let text = with_messages(messages, |raw| {
            // SAFETY: the model is open, there are this many messages, and room for `capacity` bytes.
            filled(0u8, |text, capacity, bytes| unsafe {
                sys::ww_model_chat(self.raw(), raw.as_ptr(), raw.len(), text.cast(), capacity, bytes)
            })
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The tokens of such a conversation, to be fed to a session. With `plain`, names of special tokens in the messages are text,
    /// so that nobody can end a turn by what they write.
    pub fn chat_tokens(&self, messages: &[(&str, &str)], plain: bool) -> Result<Vec<i32>> {
        let flags = if plain { sys::WW_TOKENS_PLAIN as u32 } else { 0 };
        with_messages(messages, |raw| {
            // SAFETY: the model is open, there are this many messages, and room for `capacity` tokens.
            filled(0, |ids, capacity, count| unsafe {
                sys::ww_model_chat_tokens(self.raw(), raw.as_ptr(), raw.len(), flags, ids, capacity, count)
            })
        })
    }

    /// Embeds texts: a vector of `width` numbers and length 1 for each, one after the other. `progress` counts texts.
    pub fn embed<T: AsRef<str>>(&self, texts: &[T], progress: Option<Progress<'_>>) -> Result<Vec<f32>> {
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ref().as_ptr().cast()).collect();
        let bytes: Vec<usize> = texts.iter().map(|text| text.as_ref().len()).collect();
        let mut vectors = vec![0.0; texts.len() * self.info()?.width() as usize];
        with_progress(progress, |told, user| {
            // SAFETY: each text has this many bytes; there is room for a vector of each.
            call(|| unsafe {
                sys::ww_model_embed(
                    self.raw(),
                    pointers.as_ptr(),
                    bytes.as_ptr(),
                    texts.len(),
                    vectors.as_mut_ptr(),
                    told,
                    user,
                )
            })
        })?;
        Ok(vectors)
    }

    /// The same of tokens.
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

    /// Makes a session without tokens. Refuses an encoder. The session keeps the model open.
    pub fn session(&self) -> Result<Session> {
        // SAFETY: the model is open.
        Session::make(self.vocabulary()?, |session| unsafe { sys::ww_session_create(self.raw(), session) })
    }

    /// Makes a session of a file that [`Session::save`] wrote.
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

/// Calls a function with messages as C has them.
fn with_messages<R>(messages: &[(&str, &str)], function: impl FnOnce(&[sys::ww_chat_message]) -> Result<R>) -> Result<R> {
    let roles = Texts::new(messages.iter().map(|(role, _)| Some(role)));
    let texts = Texts::new(messages.iter().map(|(_, text)| Some(text)));
    let pairs = roles.pointers("a role")?.into_iter().zip(texts.pointers("a message")?);
    let raw: Vec<_> = pairs.map(|(role, text)| sys::ww_chat_message { role, text }).collect();
    function(&raw)
}

/// A list that a call fills in: asked for its length first.
fn filled<T: Clone>(zero: T, function: impl Fn(*mut T, usize, *mut usize) -> sys::ww_status) -> Result<Vec<T>> {
    let mut count = 0;
    call(|| function(ptr::null_mut(), 0, &mut count))?;
    let mut list = vec![zero; count];
    if count > 0 {
        call(|| function(list.as_mut_ptr(), list.len(), &mut count))?;
    }
    Ok(list)
}

/// How a token is chosen. The default takes the one with the largest logit.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0: the first is taken.
    pub temperature: f64,
    /// The largest this many stay; 0: all.
    pub top_k: i32,
    /// Of these the fewest that have so much of the probability; 1: all.
    pub top_p: f64,
    /// Of these the ones with at least so much of the first one's; 0: all.
    pub min_p: f64,
    /// Logits of recent tokens are divided by it; 1: not.
    pub repetition_penalty: f64,
    /// How many tokens are recent; -1: all.
    pub repetition_window: i32,
    /// The same text with the same seed goes on the same way, anywhere.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        let raw = sys::ww_sampling::default();
        Sampling {
            temperature: raw.temperature,
            top_k: raw.top_k,
            top_p: raw.top_p,
            min_p: raw.min_p,
            repetition_penalty: raw.repetition_penalty,
            repetition_window: raw.repetition_window,
            seed: raw.seed,
        }
    }
}

impl Sampling {
    fn raw(&self) -> sys::ww_sampling {
        let mut raw = sys::ww_sampling::default();
        (raw.temperature, raw.top_k, raw.top_p, raw.min_p) = (self.temperature, self.top_k, self.top_p, self.min_p);
        (raw.repetition_penalty, raw.repetition_window) = (self.repetition_penalty, self.repetition_window);
        raw.seed = self.seed;
        raw
    }
}

/// How text is generated.
#[derive(Clone, Debug)]
pub struct Generation {
    /// At most this many tokens.
    pub tokens: i64,
    /// How each is chosen.
    pub sampling: Sampling,
    /// Go on after the model has ended its text.
    pub ignore_eos: bool,
}

impl Default for Generation {
    /// 128 tokens, each the one with the largest logit.
    fn default() -> Self {
        Generation { tokens: sys::ww_generation::default().tokens, sampling: Sampling::default(), ignore_eos: false }
    }
}

/// Tokens that a decoder was fed. One thread at a time uses a session; a [`Canceller`] ends what it does from another.
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use warpwave::{Device, Generation, Model, TokenFlags};
///
/// let model = Model::open("SmolLM2.gguf", &Device::auto()?)?;
/// let mut session = model.session()?;
/// session.feed(&model.tokenize("Once upon a time", TokenFlags::default())?)?;
/// session.generate(&Generation::default(), &mut |text| {
///     print!("{text}");
///     ControlFlow::Continue(())
/// })?;
/// # Ok::<(), warpwave::Error>(())
/// ```
pub struct Session {
    handle: Arc<Owned>,
    vocabulary: usize,
    _one_thread: PhantomData<Cell<()>>, // Send, not Sync
}

/// A session's handle, which the session and its cancellers share.
struct Owned(Handle<sys::ww_session>);

// SAFETY: cancellers use it for ww_session_cancel() only, which is made for other threads than the one that uses the session. All
// other uses go through Session, which is not Sync.
unsafe impl Sync for Owned {}

/// Ends what a session does, from any thread.
#[derive(Clone)]
pub struct Canceller(Arc<Owned>);

impl Canceller {
    /// Ends feeding or generating with [`Status::Cancelled`](crate::Status::Cancelled), at the next layer. Does nothing where
    /// nothing is under way.
    pub fn cancel(&self) {
        // SAFETY: the session is there as long as this is; the header allows this from any thread.
        unsafe { sys::ww_session_cancel((self.0).0.raw()) }
    }
}

impl Session {
    fn make(vocabulary: usize, function: impl FnOnce(*mut *mut sys::ww_session) -> sys::ww_status) -> Result<Self> {
        let handle = Arc::new(Owned(Handle::make(function)?));
        Ok(Session { handle, vocabulary, _one_thread: PhantomData })
    }

    fn raw(&self) -> *mut sys::ww_session {
        self.handle.0.raw()
    }

    /// What another thread can end this session's work with.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.handle.clone())
    }

    /// How many tokens it holds.
    pub fn len(&self) -> usize {
        // SAFETY: the session is there.
        unsafe { sys::ww_session_length(self.raw()) }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its tokens.
    pub fn tokens(&self) -> Result<Vec<i32>> {
        let mut ids = vec![0; self.len()];
        // SAFETY: there is room for all of them.
        call(|| unsafe { sys::ww_session_tokens(self.raw(), 0, ids.as_mut_ptr(), ids.len()) }).map(|()| ids)
    }

    /// Feeds tokens. A call that fails leaves the session as it was.
    pub fn feed(&mut self, ids: &[i32]) -> Result<()> {
        // SAFETY: there are this many tokens.
        call(|| unsafe { sys::ww_session_feed(self.raw(), ids.as_ptr(), ids.len()) })
    }

    /// Feeds several sessions of one model in one pass over the weights: all of them or none.
    pub fn feed_many(sessions: &mut [(&mut Session, &[i32])]) -> Result<()> {
        let raw: Vec<*mut sys::ww_session> = sessions.iter().map(|(session, _)| session.raw()).collect();
        let ids: Vec<*const i32> = sessions.iter().map(|(_, ids)| ids.as_ptr()).collect();
        let counts: Vec<usize> = sessions.iter().map(|(_, ids)| ids.len()).collect();
        // SAFETY: each session is borrowed alone, so none stands there twice; each has this many tokens.
        call(|| unsafe { sys::ww_sessions_feed(raw.as_ptr(), ids.as_ptr(), counts.as_ptr(), raw.len()) })
    }

    /// The logits behind the last token, one for each token of the vocabulary.
    pub fn logits(&self) -> Result<Vec<f32>> {
        let mut logits = vec![0.0; self.vocabulary];
        // SAFETY: there is room for the vocabulary of the session's model.
        call(|| unsafe { sys::ww_session_logits(self.raw(), logits.as_mut_ptr()) }).map(|()| logits)
    }

    /// Forgets all but the first `length` tokens, and the logits until the next feed.
    pub fn truncate(&mut self, length: usize) -> Result<()> {
        // SAFETY: the session is there.
        call(|| unsafe { sys::ww_session_truncate(self.raw(), length) })
    }

    /// A session with the same tokens, which goes its own way.
    pub fn fork(&mut self) -> Result<Session> {
        // SAFETY: the session is there.
        Session::make(self.vocabulary, |fork| unsafe { sys::ww_session_fork(self.raw(), fork) })
    }

    /// Writes it to a file, cache and all.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        // SAFETY: the session is there, the path lives until the call returns.
        with_path(path.as_ref(), |path| call(|| unsafe { sys::ww_session_save(self.raw(), path) }))
    }

    /// Chooses a token from the logits; it is not fed.
    pub fn sample(&self, sampling: &Sampling) -> Result<i32> {
        let (raw, mut token) = (sampling.raw(), 0);
        // SAFETY: the session is there and the struct is initialized.
        call(|| unsafe { sys::ww_session_sample(self.raw(), &raw, &mut token) }).map(|()| token)
    }

    /// Chooses a token, feeds it, and so on; `heard` is given each piece of text, and may stop it. What was generated is then in
    /// the session.
    pub fn generate(&mut self, how: &Generation, heard: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<GenerationEnd> {
        let (sampling, mut end) = (how.sampling.raw(), 0);
        let mut raw = sys::ww_generation::default();
        (raw.tokens, raw.sampling, raw.ignore_eos) = (how.tokens, &sampling, i32::from(how.ignore_eos));
        with_text_callback(heard, |text, user| {
            (raw.text, raw.user) = (text, user);
            // SAFETY: the session is there, and all that the struct names until the call returns.
            call(|| unsafe { sys::ww_session_generate(self.raw(), &raw, &mut end) })
        })?;
        GenerationEnd::from_raw(end).ok_or_else(|| Error::new(Status::Internal, format!("generating ended with {end}")))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Session({} tokens)", self.len())
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Canceller")
    }
}
