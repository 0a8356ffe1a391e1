//! Settings that are on or off, all with the same spelling.

use std::any::TypeId;

use clap::Arg;
use clap::ValueEnum;
use serde::Deserialize;

/// The value of a switch: `--x` and `--x=on` turn it on, `--x=off` turns it off. The configuration
/// file has `true` and `false`, or `"on"` and `"off"`. The value may also be the next word, as in
/// earlier releases, so a switch does not stand right before an argument without a flag. `true` and
/// `false` are taken in flags and variables too, since earlier releases had them there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(try_from = "Written")]
pub enum Switch {
    /// Yes.
    #[value(alias = "true")]
    On,
    /// No.
    #[default]
    #[value(alias = "false")]
    Off,
}

/// A switch in the configuration file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "true or false")]
enum Written {
    Bool(bool),
    Text(String),
}

impl Switch {
    /// Whether it is on.
    #[must_use]
    pub fn is_on(self) -> bool {
        self == Self::On
    }

    /// Gives the switches among the arguments of a command their spelling, and leaves the other
    /// arguments as they are: for `Command::mut_args`.
    #[must_use]
    pub fn spelled(argument: Arg) -> Arg {
        if argument.get_value_parser().type_id() != TypeId::of::<Self>() {
            return argument;
        }
        let argument = argument.value_name("on|off").hide_possible_values(true);
        argument.num_args(0..=1).default_missing_value("on")
    }
}

impl TryFrom<Written> for Switch {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Bool(true) => Ok(Self::On),
            Written::Bool(false) => Ok(Self::Off),
            Written::Text(text) => Self::from_str(&text, false)
                .map_err(|_| format!("`{text}` is neither true nor false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_has_booleans_or_words() {
        #[derive(Debug, Deserialize)]
        struct File {
            it: Switch,
        }
        let of = |value: &str| toml::from_str::<File>(&format!("it = {value}"));
        for (value, on) in [("true", true), ("'on'", true), ("false", false), ("'off'", false)] {
            assert_eq!(of(value).unwrap().it.is_on(), on, "{value}");
        }
        for wrong in ["1", "'maybe'", "[]"] {
            let refused = of(wrong).unwrap_err().to_string();
            assert!(refused.contains("true") && refused.contains("it ="), "{refused}");
        }
    }
}
