//! The rules of one event that its owner chooses. Each is declared once, in [`policy!`] below: stores,
//! requests, answers and the API's description are made from [`POLICY_FIELDS`].

mod setting;

use crate::limits::{HOLD_LIFETIME_MS_MAX, HOLD_TTL_MS_MIN, UNITS_PER_HOLD_MAX, WINDOW_MS_MAX};
use crate::words::words;
use crate::{Invalid, Span, Timestamp};
use setting::{NEVER, Setting};

pub use setting::{PolicyBounds, PolicyKind, PolicyValue};

/// The deadline of something that an event allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Deadline {
    /// The start of the event; never, if it has no start.
    #[default]
    AtStart,
    At(Timestamp),
    /// Never, as its owner chose.
    Never,
}

impl Deadline {
    /// Returns the time it is for an event that starts at `starts_at`; `None` is never.
    pub fn of(self, starts_at: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::AtStart => starts_at,
            Self::At(time) => Some(time),
            Self::Never => None,
        }
    }
}

/// One field of a policy: its name everywhere, and its getter and setter.
#[derive(Clone, Copy, Debug)]
pub struct PolicyField {
    /// Its name in requests, answers and rows.
    pub name: &'static str,
    pub kind: PolicyKind,
    pub bounds: PolicyBounds,
    /// Its name in a refusal.
    in_refusals: &'static str,
    /// Its description in the API.
    pub about: &'static str,
    get: fn(&Policy) -> PolicyValue,
    set: fn(&mut Policy, PolicyValue) -> Option<()>,
}

impl PolicyField {
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICY_FIELDS.iter().find(|field| field.name == name)
    }

    pub fn get(&self, policy: &Policy) -> PolicyValue {
        (self.get)(policy)
    }

    /// Returns the field's own text for a word, if it is one of its words.
    pub fn word(&self, given: &str) -> Option<PolicyValue> {
        let words = match self.kind {
            PolicyKind::Word(words) => words,
            PolicyKind::Deadline => &[NEVER],
            PolicyKind::Millis
            | PolicyKind::Count
            | PolicyKind::CountOrNull
            | PolicyKind::TimeOrNull
            | PolicyKind::Flag => return None,
        };
        let known = words.iter().find(|word| **word == given);
        known.map(|word| PolicyValue::Word(word))
    }
}

words! {
    /// What happens to money that arrives after its hold ended (model.md 5).
    #[derive(Default)]
    pub LatePayment:
    /// It goes back and the booking stays expired.
    Refuse = "refuse",
    /// The units are sold if they are free; else it goes back.
    #[default]
    IfStillFree = "if_still_free",
    Refund = "refund",
}

words! {
    /// What happens to the hold when payment fails.
    #[derive(Default)]
    pub OnPaymentFailure:
    /// The same buyer keeps the units for the retry window.
    #[default]
    Keep = "keep",
    /// The units are free at once.
    Release = "release",
}

words! {
    /// Which seat choices are refused for the sake of the hall.
    #[derive(Default)]
    pub Adjacency:
    #[default]
    None = "none",
    /// Those that leave a single free seat where they need not.
    NoOrphan = "no_orphan",
}

/// Declares the policy: a field's name in the code, its type, its name elsewhere, its default, and the
/// bounds of a number.
macro_rules! policy {
    ($($(#[doc = $about:literal])+ $field:ident: $type:ty, $name:literal, $default:expr, $bounds:expr;)+) => {
        /// Per event: times, budgets and rules.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Policy {
            $($(#[doc = $about])+ pub $field: $type,)+
        }

        impl Default for Policy {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        /// Every field of a policy.
        pub const POLICY_FIELDS: &[PolicyField] = &[$(PolicyField {
            name: $name,
            kind: <$type as Setting>::KIND,
            bounds: $bounds,
            in_refusals: concat!("policy.", $name),
            about: concat!($($about),+),
            get: |policy| policy.$field.write(),
            set: |policy, value| {
                policy.$field = Setting::read(value)?;
                Some(())
            },
        },)+];

        $(const _: () = assert!(
            $bounds.fit(<$type as Setting>::KIND),
            concat!("bounds of another kind: ", $name)
        );)+
    };
}

policy! {
    /// How long a hold lives when the caller does not say.
    hold_ttl: Span, "hold_ttl_ms", Span::from_ms(600_000),
        PolicyBounds::Millis(HOLD_TTL_MS_MIN, HOLD_LIFETIME_MS_MAX);
    /// How long it may live with all extensions.
    hold_max: Span, "hold_max_ms", Span::from_ms(1_800_000),
        PolicyBounds::Millis(HOLD_TTL_MS_MIN, HOLD_LIFETIME_MS_MAX);
    /// Most units of one hold.
    units_per_hold_max: u32, "units_per_hold_max", 10,
        PolicyBounds::Count(1, UNITS_PER_HOLD_MAX);
    /// Most units one holder may hold live at once.
    units_per_holder_max: u32, "units_per_holder_max", 20, PolicyBounds::Count(1, u32::MAX);
    /// Most units one holder may have bought; `null`: no limit.
    units_bought_per_holder_max: Option<u32>, "units_bought_per_holder_max", None,
        PolicyBounds::Count(1, u32::MAX);
    /// How long a pinned hold waits for the money.
    payment_window: Span, "payment_window_ms", Span::from_ms(600_000),
        PolicyBounds::Millis(HOLD_TTL_MS_MIN, WINDOW_MS_MAX);
    /// How long the buyer keeps the units after a failed payment.
    retry_window: Span, "retry_window_ms", Span::from_ms(120_000),
        PolicyBounds::Millis(HOLD_TTL_MS_MIN, WINDOW_MS_MAX);
    /// What becomes of money that comes after its hold ended.
    late_payment: LatePayment, "late_payment", LatePayment::default(), PolicyBounds::None;
    /// What a failed payment does to the hold. With `keep` a declined card is none: the buyer pays the same
    /// intent with another one until the payment window ends. With `release` it is.
    on_payment_failure: OnPaymentFailure, "on_payment_failure", OnPaymentFailure::default(),
        PolicyBounds::None;
    /// Which seat choices are refused.
    adjacency: Adjacency, "adjacency", Adjacency::default(), PolicyBounds::None;
    /// When the sale begins; `null`: at once.
    sale_opens_at: Option<Timestamp>, "sale_opens_at", None, PolicyBounds::None;
    /// When the sale ends. Left out of a new event: when the event starts; `null`: never.
    sale_closes_at: Deadline, "sale_closes_at", Deadline::default(), PolicyBounds::None;
    /// Until when buyers cancel and exchange; staff may later. Left out of a new event: until the event
    /// starts; `null`: always.
    cancel_until: Deadline, "cancel_until", Deadline::default(), PolicyBounds::None;
    /// Whether shoppers find it in the list of events. They open an unlisted one by its id.
    listed: bool, "listed", true, PolicyBounds::None;
}

/// Fields of a policy to be set; those that are not named stay as they are.
#[derive(Clone, Debug, Default)]
pub struct PolicyChange(Vec<(&'static PolicyField, PolicyValue)>);

impl PolicyChange {
    /// Adds a field to be set.
    ///
    /// # Errors
    /// [`Invalid`] for a value that the field does not take.
    pub fn set(&mut self, field: &'static PolicyField, value: PolicyValue) -> Result<(), Invalid> {
        // A value of the right kind fits every policy, so trying it on one is enough.
        (field.set)(&mut Policy::default(), value).ok_or_else(|| {
            Invalid::new(field.name, format!("it takes {}", field.kind.in_words()))
        })?;
        self.0.push((field, value));
        Ok(())
    }
}

impl From<&Policy> for PolicyChange {
    /// Copies every field.
    fn from(policy: &Policy) -> Self {
        let fields = POLICY_FIELDS.iter();
        Self(fields.map(|field| (field, field.get(policy))).collect())
    }
}

impl Policy {
    /// Returns this policy with the fields of `change` set.
    ///
    /// # Errors
    /// As [`Policy::validate`], for what the change makes wrong: another build may have accepted what is stored.
    pub fn changed(&self, change: &PolicyChange) -> Result<Self, Invalid> {
        let changed = self.merged(change);
        let is_new = |breach: &Invalid| self.breaches().all(|known| known != *breach);
        let breach = changed.breaches().find(is_new);
        breach.map_or(Ok(changed), Err)
    }

    /// Returns this policy with the fields of `change` set, unchecked: for stored policies, which
    /// another build may have accepted.
    #[must_use]
    pub fn merged(&self, change: &PolicyChange) -> Self {
        let mut changed = self.clone();
        for (field, value) in &change.0 {
            (field.set)(&mut changed, *value);
        }
        changed
    }

    /// Checks that the parts of the policy agree and are within their bounds.
    ///
    /// # Errors
    /// The first setting that is wrong, with the bound it breaks.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.breaches().next().map_or(Ok(()), Err)
    }

    /// Lists the settings that are wrong, each with the bound it breaks.
    fn breaches(&self) -> impl Iterator<Item = Invalid> {
        let outside = POLICY_FIELDS.iter().filter_map(move |field| {
            let number = field.get(self).number()?;
            let (least, most) = field.bounds.range()?;
            let reason = || format!("{number} is outside {least} ..= {most}");
            let is_inside = (least..=most).contains(&number);
            (!is_inside).then(|| Invalid::new(field.in_refusals, reason()))
        });
        let (ttl, most) = (self.hold_ttl.ms(), self.hold_max.ms());
        let above_max = (ttl > most).then(|| {
            let reason =
                format!("{ttl} is outside {HOLD_TTL_MS_MIN} ..= {most}, which is `hold_max_ms`");
            Invalid::new("policy.hold_ttl_ms", reason)
        });
        let never_open = match (self.sale_opens_at, self.sale_closes_at) {
            (Some(opens), Deadline::At(closes)) if closes <= opens => Some(Invalid::new(
                "policy.sale_closes_at",
                "the sale must close after it opens".to_owned(),
            )),
            _ => None,
        };
        outside.chain(above_max).chain(never_open)
    }

    /// Checks that an event that starts at `starts_at` can be on sale under the policy.
    ///
    /// # Errors
    /// `policy.sale_opens_at`, when the sale would end before it opens.
    pub fn require_sale(&self, starts_at: Option<Timestamp>) -> Result<(), Invalid> {
        match (self.sale_opens_at, self.sale_closes_at, starts_at) {
            (Some(opens), Deadline::AtStart, Some(starts)) if starts <= opens => Err(Invalid::new(
                "policy.sale_opens_at",
                "the sale would open when it is over: it ends when the event starts, unless \
                 `sale_closes_at` says another time, or null for never"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
