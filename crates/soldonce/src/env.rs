//! Environment variables: an empty one counts as unset, and an unknown one is warned of.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};

/// The prefix of this program's variables.
const PREFIX: &str = "SOLDONCE_";
/// Known variables that are not arguments. Cargo passes that of the build to what it runs. Those of
/// a lease are passed by `lease run` to its command, which may be a server.
const OTHERS: [&str; 7] = [
    "SOLDONCE_LOG",
    "SOLDONCE_BUILD",
    "SOLDONCE_LEASE_NAME",
    "SOLDONCE_LEASE_TOKEN",
    "SOLDONCE_LEASE_DEADLINE_MS",
    "SOLDONCE_LEASE_CAP_AT_MS",
    "SOLDONCE_LEASE_STATUS_FD",
];

/// Makes a command ignore variables that are empty: that is how a compose file or a unit file says
/// that nothing is set.
pub(crate) fn without_empty(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) {
            arg.env(Resettable::Reset)
        } else {
            arg
        }
    });
    command.mut_subcommands(without_empty)
}

/// Makes a command ignore all environment variables.
pub(crate) fn without(command: Command) -> Command {
    command.mut_args(|arg| arg.env(Resettable::Reset))
}

/// The arguments that name a ledger. Of two, one that is a flag wins over a variable.
const LEDGERS: [&str; 2] = ["data", "database_url"];

/// Those of `LEDGERS` that the command line itself gave.
static FLAGS: OnceLock<Vec<&str>> = OnceLock::new();

/// Remembers which arguments of a ledger are flags, and not variables or defaults.
pub(crate) fn note_flags(given: &ArgMatches) {
    let mut flags = Vec::new();
    let mut command = Some(given);
    while let Some(given) = command {
        let is_flag = |id: &&str| {
            let is_given = given.try_contains_id(id).is_ok_and(|is_given| is_given);
            is_given && given.value_source(id) == Some(ValueSource::CommandLine)
        };
        flags.extend(LEDGERS.into_iter().filter(is_flag));
        command = given.subcommand().map(|(_, given)| given);
    }
    // A process has one command line.
    FLAGS.set(flags).ok();
}

/// Tells whether this argument of a ledger was given by a flag.
pub(crate) fn is_flag(id: &str) -> bool {
    FLAGS.get().is_some_and(|flags| flags.contains(&id))
}

/// Warns of variables that look like this program's and that nothing reads: a misspelt name would
/// silently leave its setting at the default.
pub(crate) fn warn_of_unknown() {
    let known = known_variables();
    let is_unknown = |name: &String| name.starts_with(PREFIX) && !known.contains(name);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(is_unknown) {
        let hint = nearest(&name, &known).map(|nearest| format!("; is it {nearest}?"));
        let hint = hint.unwrap_or_default();
        tracing::warn!("{name} is set and means nothing to this program{hint}");
    }
}

fn known_variables() -> BTreeSet<String> {
    let mut known = OTHERS.map(str::to_owned).into_iter().collect();
    add_variables(&crate::Cli::command(), &mut known);
    known
}

/// Adds the variables of a command and of all commands below it.
fn add_variables(command: &Command, known: &mut BTreeSet<String>) {
    let named = command.get_arguments().filter_map(clap::Arg::get_env);
    known.extend(named.filter_map(|name| name.to_str().map(str::to_owned)));
    for command in command.get_subcommands() {
        add_variables(command, known);
    }
}

/// Returns the known name that is most like this one, if any is like it.
fn nearest<'a>(name: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    let distance = |known: &str| strsim::damerau_levenshtein(name, known);
    let nearest = known.iter().min_by_key(|known| distance(known.as_str()))?;
    let own = name.len().saturating_sub(PREFIX.len());
    (distance(nearest) <= own.div_ceil(3)).then_some(nearest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_finds_the_one_that_was_meant() {
        let known = known_variables();
        for name in [
            "SOLDONCE_LIMIT_HELD",
            "SOLDONCE_DATA",
            "SOLDONCE_STRIPE_URL",
        ] {
            assert!(known.contains(name), "{name}");
        }
        for (misspelt, meant) in [
            ("SOLDONCE_LISTN", Some("SOLDONCE_LISTEN")),
            ("SOLDONCE_LIMIT_HOLD", Some("SOLDONCE_LIMIT_HELD")),
            ("SOLDONCE_DATABASEURL", Some("SOLDONCE_DATABASE_URL")),
            ("SOLDONCE_LEASE_URLS", Some("SOLDONCE_LEASE_URL")),
            ("SOLDONCE_SOMETHING_ELSE", None),
        ] {
            assert_eq!(nearest(misspelt, &known), meant, "{misspelt}");
        }
    }
}
