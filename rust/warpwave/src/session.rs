//! Sessions: the tokens fed to a decoder, and the text that it generates after them.
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use warpwave_sys as sys;

use crate::callback::with_text_callback;
use crate::error::{call, Error, Result, Status};
use crate::handle::Handle;
use crate::text::with_path;

c_enum! {
    /// Why generation ended.
    GenerationEnd(ww_generation_end) {
        /// The requested number of tokens was generated.
        Length = WW_GENERATION_LENGTH,
        /// The model ended its text.
        Eos = WW_GENERATION_EOS,
        /// The context is full.
        Context = WW_GENERATION_CONTEXT,
        /// The callback stopped it.
        Stopped = WW_GENERATION_STOPPED,
    }
}

/// How to choose a token. By default the one with the largest logit.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 always chooses the largest logit.
    pub temperature: f64,
    /// Keep this many of the largest logits; 0: all.
    pub top_k: i32,
    /// Of these, keep the fewest whose probabilities add up to this; 1: all.
    pub top_p: f64,
    /// Of these, keep the ones with at least this fraction of the largest probability; 0: all.
    pub min_p: f64,
    /// Divides the logits of recent tokens; 1: no effect.
    pub repetition_penalty: f64,
    /// Subtracted from the logit of a recent token for each time that it occurs; 0: no effect.
    pub frequency_penalty: f64,
    /// Subtracted from the logits of recent tokens; 0: no effect.
    pub presence_penalty: f64,
    /// How many tokens count as recent; -1: all.
    pub repetition_window: i32,
    /// The same text with the same seed continues the same way on every device.
    pub seed: u64,
    /// Tokens, and what is added to their logits after the penalties.
    pub logit_bias: (Vec<i32>, Vec<f32>),
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
            frequency_penalty: raw.frequency_penalty,
            presence_penalty: raw.presence_penalty,
            repetition_window: raw.repetition_window,
            seed: raw.seed,
            logit_bias: (Vec::new(), Vec::new()),
        }
    }
}

impl Sampling {
    fn raw(&self) -> sys::ww_sampling {
        let mut raw = sys::ww_sampling::default();
        (raw.temperature, raw.top_k, raw.top_p, raw.min_p) = (self.temperature, self.top_k, self.top_p, self.min_p);
        (raw.repetition_penalty, raw.repetition_window) = (self.repetition_penalty, self.repetition_window);
        (raw.frequency_penalty, raw.presence_penalty) = (self.frequency_penalty, self.presence_penalty);
        raw.seed = self.seed;
        (raw.bias_tokens, raw.biases) = (self.logit_bias.0.as_ptr(), self.logit_bias.1.as_ptr());
        raw.bias_count = self.logit_bias.0.len().min(self.logit_bias.1.len()) as i64;
        raw
    }
}

c_enum! {
    /// The language of a grammar.
    GrammarKind(ww_grammar_kind) {
        /// GBNF.
        Gbnf = WW_GRAMMAR_GBNF,
        /// A JSON schema.
        JsonSchema = WW_GRAMMAR_JSON_SCHEMA,
    }
}

/// Constrains a generated text and tracks the position in it: use one grammar per text. It keeps the model open. Only one
/// thread may use it at a time.
pub struct Grammar(Handle<sys::ww_grammar>);

impl Grammar {
    pub(crate) fn make(function: impl FnOnce(*mut *mut sys::ww_grammar) -> sys::ww_status) -> Result<Self> {
        Handle::make(function).map(Grammar)
    }

    /// Advances by a token that [`Session::sample_with`] chose. Refuses a token that may not come next, and then stays
    /// unchanged.
    pub fn accept(&mut self, token: i32) -> Result<()> {
        // SAFETY: the grammar is there, and borrowed alone.
        call(|| unsafe { sys::ww_grammar_accept(self.0.raw(), token) })
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Grammar")
    }
}

/// How to generate text.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The maximum number of tokens.
    pub tokens: i64,
    /// How to choose each token.
    pub sampling: Sampling,
    /// Continue after the model has ended its text.
    pub ignore_eos: bool,
}

impl Default for Generation {
    /// 128 tokens, each with the largest logit.
    fn default() -> Self {
        Generation { tokens: sys::ww_generation::default().tokens, sampling: Sampling::default(), ignore_eos: false }
    }
}

/// The tokens fed to a decoder. Only one thread may use a session at a time; a [`Canceller`] stops it from another.
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

/// Stops what a session is doing, from any thread.
#[derive(Clone)]
pub struct Canceller(Arc<Owned>);

impl Canceller {
    /// Stops feeding or generating with [`Status::Cancelled`](crate::Status::Cancelled), at the next layer. Has no effect on an
    /// idle session.
    pub fn cancel(&self) {
        // SAFETY: the session is there as long as this is; the header allows this from any thread.
        unsafe { sys::ww_session_cancel((self.0).0.raw()) }
    }
}

impl Session {
    pub(crate) fn make(vocabulary: usize, function: impl FnOnce(*mut *mut sys::ww_session) -> sys::ww_status) -> Result<Self> {
        let handle = Arc::new(Owned(Handle::make(function)?));
        Ok(Session { handle, vocabulary, _one_thread: PhantomData })
    }

    fn raw(&self) -> *mut sys::ww_session {
        self.handle.0.raw()
    }

    /// Returns an object with which another thread can stop this session's work.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.handle.clone())
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        // SAFETY: the session is there.
        unsafe { sys::ww_session_length(self.raw()) }
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tokens.
    pub fn tokens(&self) -> Result<Vec<i32>> {
        let mut ids = vec![0; self.len()];
        // SAFETY: there is room for all of them.
        call(|| unsafe { sys::ww_session_tokens(self.raw(), 0, ids.as_mut_ptr(), ids.len()) }).map(|()| ids)
    }

    /// Feeds tokens. A call that fails leaves the session unchanged.
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

    /// Returns the logits after the last token, one per token of the vocabulary.
    pub fn logits(&self) -> Result<Vec<f32>> {
        let mut logits = vec![0.0; self.vocabulary];
        // SAFETY: there is room for the vocabulary of the session's model.
        call(|| unsafe { sys::ww_session_logits(self.raw(), logits.as_mut_ptr()) }).map(|()| logits)
    }

    /// Drops all but the first `length` tokens, and the logits until the next feed.
    pub fn truncate(&mut self, length: usize) -> Result<()> {
        // SAFETY: the session is there.
        call(|| unsafe { sys::ww_session_truncate(self.raw(), length) })
    }

    /// Returns an independent session with the same tokens.
    pub fn fork(&mut self) -> Result<Session> {
        // SAFETY: the session is there.
        Session::make(self.vocabulary, |fork| unsafe { sys::ww_session_fork(self.raw(), fork) })
    }

    /// Writes the session with its cache to a file.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        // SAFETY: the session is there, the path lives until the call returns.
        with_path(path.as_ref(), |path| call(|| unsafe { sys::ww_session_save(self.raw(), path) }))
    }

    /// Chooses a token from the logits without feeding it.
    pub fn sample(&self, sampling: &Sampling) -> Result<i32> {
        self.sampled(&sampling.raw())
    }

    /// Chooses among the tokens that a grammar allows next. [`Grammar::accept`] then advances the grammar.
    pub fn sample_with(&self, sampling: &Sampling, grammar: &mut Grammar) -> Result<i32> {
        self.sampled(&sys::ww_sampling { grammar: grammar.0.raw(), ..sampling.raw() })
    }

    fn sampled(&self, raw: &sys::ww_sampling) -> Result<i32> {
        let mut token = 0;
        // SAFETY: the session is there, the struct is initialized, and its grammar is borrowed alone.
        call(|| unsafe { sys::ww_session_sample(self.raw(), raw, &mut token) }).map(|()| token)
    }

    /// Chooses and feeds tokens repeatedly. `heard` receives each piece of text and may stop the generation. The session
    /// contains what was generated.
    pub fn generate(&mut self, how: &Generation, heard: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<GenerationEnd> {
        self.generated(how, how.sampling.raw(), heard)
    }

    /// Generates a text that follows a grammar, and advances the grammar with its tokens.
    pub fn generate_with(
        &mut self,
        how: &Generation,
        grammar: &mut Grammar,
        heard: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<GenerationEnd> {
        self.generated(how, sys::ww_sampling { grammar: grammar.0.raw(), ..how.sampling.raw() }, heard)
    }

    fn generated(
        &mut self,
        how: &Generation,
        sampling: sys::ww_sampling,
        heard: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<GenerationEnd> {
        let (mut raw, mut end) = (sys::ww_generation::default(), 0);
        (raw.tokens, raw.sampling, raw.ignore_eos) = (how.tokens, &sampling, i32::from(how.ignore_eos));
        with_text_callback(heard, |text, user| {
            (raw.text, raw.user) = (text, user);
            // SAFETY: the session is there, and all that the struct names until the call returns; a grammar is borrowed alone.
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
