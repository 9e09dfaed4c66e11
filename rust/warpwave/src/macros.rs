//! Rust forms of C enumerations and structs, and code that several types share.

/// The methods of types with `conditions`: queries and selections.
macro_rules! conditions {
    ($text:lifetime) => {
        /// Only rows whose payload matches these JSON conditions, as in `{"year": {"$gt": 2000}, "lang": {"$in": ["en",
        /// "de"]}}`.
        pub fn filter(mut self, conditions: impl Into<String>) -> Self {
            self.conditions.filter = Some(conditions.into());
            self
        }

        /// Only rows for which an SQL expression over id, handle and payload is true, as in `payload->>'$.lang' = :lang`. For
        /// collections of a store.
        pub fn filter_sql(mut self, expression: &$text str) -> Self {
            self.conditions.filter_sql = Some(expression);
            self
        }

        /// Binds a value to a parameter of the SQL expression, by name (`":lang"`, `"?1"`).
        pub fn bind(mut self, name: &str, value: impl Into<crate::query::Value>) -> Self {
            self.conditions.parameters.push((name.to_owned(), value.into()));
            self
        }
    };
}

/// An enumeration of C. A number that this version does not know has no value.
macro_rules! c_enum {
    ($(#[$doc:meta])* $name:ident($raw:ident) { $($(#[$value_doc:meta])* $value:ident = $constant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_doc])* $value,)*
        }

        impl $name {
            /// Returns C's number for the value.
            #[inline]
            pub fn raw(self) -> ::warpwave_sys::$raw {
                match self {
                    $($name::$value => ::warpwave_sys::$constant,)*
                }
            }

            /// Returns the value for C's number.
            #[inline]
            pub fn from_raw(raw: ::warpwave_sys::$raw) -> Option<Self> {
                match raw {
                    $(::warpwave_sys::$constant => Some($name::$value),)*
                    _ => None,
                }
            }
        }
    };
}

/// C's names for the values of an enumeration, such as "cosine".
macro_rules! names {
    ($($name:ident by $function:ident),*) => {
        $(impl ::std::fmt::Display for $name {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                // SAFETY: takes any number and returns a static text that ends with a NUL.
                let name = unsafe { ::std::ffi::CStr::from_ptr(::warpwave_sys::$function(self.raw())) };
                out.pad(&name.to_string_lossy())
            }
        })*
    };
}

/// A struct that C fills in, with a function for each field: `text` for a text, `count` for a number, `flag` for a number that is
/// true or false, `value` for an enumeration.
macro_rules! info {
    ($(#[$doc:meta])* $name:ident($raw:ident) { $($(#[$field_doc:meta])* $kind:ident $field:ident $(: $type:ty)?,)* }) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(pub(crate) ::warpwave_sys::$raw);

        impl $name {
            $(info!(@$kind [$(#[$field_doc])*] $field $($type)?);)*
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                out.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field()))*.finish()
            }
        }
    };
    (@text [$($doc:tt)*] $field:ident) => {
        $($doc)*
        pub fn $field(&self) -> &str {
            crate::field::text_of(&self.0.$field)
        }
    };
    (@count [$($doc:tt)*] $field:ident $type:ty) => {
        $($doc)*
        pub fn $field(&self) -> $type {
            self.0.$field
        }
    };
    (@flag [$($doc:tt)*] $field:ident) => {
        $($doc)*
        pub fn $field(&self) -> bool {
            self.0.$field != 0
        }
    };
    (@value [$($doc:tt)*] $field:ident $type:ty) => {
        $($doc)*
        pub fn $field(&self) -> Option<$type> {
            <$type>::from_raw(self.0.$field)
        }
    };
}
