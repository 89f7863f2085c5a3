//! Variables of the environment. An empty one is as good as none: that is how a compose file or a unit
//! file says that nothing is set.

use clap::Command;
use clap::builder::Resettable;

/// The same command, deaf to variables that are empty.
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
