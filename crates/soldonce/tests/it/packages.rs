//! What is installed: the Debian package and the root of the image, each unpacked and started without the
//! machine's own files, and what `init`, `completions` and `man` write.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use soldonce_testkit::{program, workspace};

use crate::backup::run;
use crate::crash::server::{PROGRAM, Server};
use crate::operate::sell_one;
use crate::program::ends_well;
use crate::store::folder;
use crate::watch::asked_by_the_dashboard;

fn deploy(name: &str) -> std::path::PathBuf {
    workspace().unwrap().join("deploy").join(name)
}

/// Sells a seat by a server that runs as `command` says.
fn sells(mut command: Command, data: &Path) {
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command, data).unwrap();
    sell_one(&mut server.client("ann"));
    assert!(server.stop().success());
}

#[test]
fn the_debian_package_has_what_a_service_needs_and_sells_a_seat() {
    let place = folder("packages-deb");
    ends_well(
        Command::new(deploy("deb/build"))
            .arg(PROGRAM)
            .arg(&place)
            .env("SOLDONCE_DEB_COMPRESSION", "none"),
    );
    let package = std::fs::read_dir(&place)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let told = ends_well(Command::new("dpkg-deb").arg("--info").arg(&package));
    for line in ["Package: soldonce", "Version: 0.", "Depends: libc6 (>= 2."] {
        assert!(told.contains(line), "{told}");
    }
    let script = std::fs::read_to_string(deploy("deb/postinst")).unwrap();
    let called = script.split_whitespace();
    let called: Vec<&str> = called.filter(|word| word.starts_with("systemd-")).collect();
    assert_eq!(called.len(), 2, "{script}");
    for program in called {
        let depends = format!(", systemd | {program}");
        assert!(told.contains(&depends), "{told}");
    }
    let root = place.join("root");
    ends_well(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    for file in [
        "man/man1/soldonce.1.gz",
        "bash-completion/completions/soldonce",
    ] {
        assert!(root.join("usr/share").join(file).exists(), "{file}");
    }
    let manual = std::fs::read_to_string(root.join("usr/share/doc/soldonce/operations.md"));
    let manual = manual.unwrap();
    let named = manual.split('`').filter_map(|word| word.strip_prefix('/'));
    let named: Vec<&str> = named.filter(|path| path.starts_with("usr/")).collect();
    assert!(named.len() >= 3, "{named:?}");
    for path in named {
        assert!(root.join(path).exists(), "the manual names /{path}");
    }
    let unit = root.join("lib/systemd/system/soldonce.service");
    let security = ends_well(
        Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--threshold=30", "--no-pager"])
            .arg(unit),
    );
    assert!(security.contains("Overall exposure level"), "{security}");
    let mut command = Command::new(root.join("usr/bin/soldonce"));
    command.env("SOLDONCE_CONFIG", root.join("etc/soldonce/soldonce.toml"));
    command.env("SOLDONCE_DATA", place.join("data"));
    sells(command, &place.join("server"));
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_archive_is_whole_says_what_it_needs_and_sells_a_seat() {
    let place = folder("packages-archive");
    ends_well(
        Command::new(deploy("archive/build"))
            .arg(PROGRAM)
            .arg(&place),
    );
    let sums = ["--check", "--strict", "SHA256SUMS"];
    ends_well(Command::new("sha256sum").args(sums).current_dir(&place));
    let of_kind = |kind: &str| {
        let mut files = std::fs::read_dir(&place)
            .unwrap()
            .map(|file| file.unwrap().path());
        files
            .find(|file| file.to_str().unwrap().ends_with(kind))
            .unwrap()
    };
    let bill = std::fs::read(of_kind(".cdx.json")).unwrap();
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    let parts = bill["components"].as_array().unwrap();
    let named = |name: &str| parts.iter().any(|part| part["name"] == name);
    assert!(
        named("rustls") && named("soldonce-core") && !named("soldonce-testkit"),
        "{bill:#}"
    );
    assert!(
        parts.iter().all(|part| part["licenses"].is_array()),
        "{bill:#}"
    );
    let archive = of_kind(".tar.gz");
    ends_well(
        Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .current_dir(&place),
    );
    let root = archive.with_extension("").with_extension("");
    let needs = std::fs::read_to_string(root.join("REQUIRES")).unwrap();
    assert!(needs.starts_with("Linux with glibc 2."), "{needs}");
    for file in [
        "man/soldonce-serve.1",
        "docs/operations.md",
        "prometheus/alerts.yml",
        "grafana/soldonce.json",
        "systemd/soldonce.sysusers",
        "systemd/soldonce-backup.timer",
    ] {
        assert!(root.join(file).exists(), "{file}");
    }
    let mut command = Command::new(root.join("bin/soldonce"));
    command.env("SOLDONCE_DATA", place.join("data"));
    sells(command, &place.join("server"));
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_root_of_the_image_has_all_that_the_binary_needs() {
    let place = folder("packages-image");
    let root = place.join("root");
    ends_well(Command::new(deploy("image/rootfs")).arg(PROGRAM).arg(&root));
    let inside = |program: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--root"])
            .arg(&root);
        command.args(["--wd", "/tmp", "--", program]);
        command
    };
    assert!(
        !inside("/bin/sh").output().unwrap().status.success(),
        "there is a shell"
    );
    let mut command = inside("/usr/bin/soldonce");
    // /data is the user's of the image, who is unknown in a namespace of a test.
    command.env("SOLDONCE_DATA", "data");
    // An image has none of these; cargo sets them for what it runs, to paths of this machine.
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    sells(command, &place.join("server"));
    assert!(root.join("tmp/data/ledger.sqlite").exists());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_alerts_fire_and_are_silent() {
    let rules = deploy("prometheus/alerts.test.yml");
    ends_well(
        Command::new(program("promtool").unwrap())
            .args(["test", "rules"])
            .arg(rules),
    );
}

#[test]
fn the_configuration_of_the_manual_is_one_that_prometheus_takes() {
    let place = folder("packages-scrape");
    let manual = std::fs::read_to_string(workspace().unwrap().join("docs/operations.md"));
    let manual = manual.unwrap();
    let config = manual.split("```yaml\n").nth(1).unwrap();
    let config = config.split("```").next().unwrap();
    let rules = deploy("prometheus/alerts.yml");
    let installed = "/usr/share/soldonce/prometheus/alerts.yml";
    let config = config.replace(installed, rules.to_str().unwrap());
    assert!(config.contains("job_name: soldonce\n"), "{config}");
    let file = place.join("prometheus.yml");
    std::fs::write(&file, config).unwrap();
    let mut check = Command::new(program("promtool").unwrap());
    let checked = ends_well(check.args(["check", "config"]).arg(file));
    assert!(checked.contains("rules found"), "{checked}");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_dashboard_asks_what_prometheus_understands() {
    let place = folder("packages-dashboard");
    // Rules of the same name must differ in a label.
    let rules = asked_by_the_dashboard().into_iter().enumerate();
    let rules = rules.map(|(at, asked)| {
        let asked = asked.replace("$__rate_interval", "5m");
        json!({"record": "panel", "labels": {"at": at.to_string()}, "expr": asked})
    });
    let rules: Vec<Value> = rules.collect();
    // JSON is YAML, too.
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let file = place.join("rules.yml");
    std::fs::write(&file, rules.to_string()).unwrap();
    let mut check = Command::new(program("promtool").unwrap());
    ends_well(check.args(["check", "rules"]).arg(file));
    std::fs::remove_dir_all(&place).unwrap();
}

/// Runs Python with the packages that judge what is in `deploy`.
fn python(arguments: &[&str]) -> String {
    let mut command = Command::new(program("python3").unwrap());
    ends_well(command.args(arguments).env("PYTHONPATH", judges()))
}

fn judges() -> PathBuf {
    let script = program("kubernetes-validate").unwrap();
    script.ancestors().nth(2).unwrap().to_owned()
}

/// Helm is in an archive of an archive of a package.
const UNPACK_HELM: &str = "
import io, pathlib, sys, tarfile, zipfile
packages, to = map(pathlib.Path, sys.argv[1:])
[archive] = packages.glob('aws_cdk/*/_jsii/*.tgz')
layer = tarfile.open(archive).extractfile('package/lib/layer.zip').read()
to.write_bytes(zipfile.ZipFile(io.BytesIO(layer)).read('helm/helm'))
to.chmod(0o755)
";

/// The settings of a rendered chart as NAME=VALUE.
const SETTINGS_OF_CHART: &str = "
import sys, yaml
for document in yaml.safe_load_all(open(sys.argv[1])):
    for name, value in (document.get('data') or document.get('stringData') or {}).items():
        print(name + '=' + value)
";

#[test]
fn the_chart_renders_what_kubernetes_takes_and_settings_that_are_known() {
    let place = folder("packages-chart");
    let helm = place.join("helm");
    python(&[
        "-c",
        UNPACK_HELM,
        judges().to_str().unwrap(),
        helm.to_str().unwrap(),
    ]);
    let number = place.join("number.yaml");
    std::fs::write(&number, "settings: {limit_held: 1000000}").unwrap();
    let run_helm = |verb: &[&str], values: &str| {
        let mut command = Command::new(&helm);
        command
            .args(verb)
            .arg(deploy("helm/soldonce"))
            .args(["--set", values, "--values"])
            .arg(&number);
        command.env("HOME", &place);
        command
    };
    let whole = "postgresql.password=a b/c,secrets.admin_key=an-admin-key-of-a-test,\
                 settings.trusted_proxies={10.0.0.0/8,192.0.2.1},\
                 secrets.lease_url={redis://a,redis://b,redis://c}";
    ends_well(&mut run_helm(&["lint", "--strict"], whole));
    let bare = "existingSecret=mine,postgresql.enabled=false,redis.enabled=false,\
                ingress.enabled=true,podAnnotations=null";
    let files = [("whole", whole), ("bare", bare)].map(|(name, values)| {
        let rendered = ends_well(&mut run_helm(&["template", "shop"], values));
        let file = place.join(name).display().to_string();
        std::fs::write(&file, rendered).unwrap();
        python(&["-m", "kubernetes_validate", "--strict", "-k", "1.33", &file]);
        file
    });
    let output = run_helm(&["template", "shop"], "replicas=3")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("set postgresql.password"), "{said}");
    let settings = python(&["-c", SETTINGS_OF_CHART, &files[0]]);
    let options = ends_well(Command::new(PROGRAM).args(["serve", "--help"]));
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--print-settings"]);
    for line in settings.lines() {
        let (name, value) = line.split_once('=').unwrap();
        command.env(name, value);
        let is_known = name == "POSTGRES_PASSWORD" || options.contains(&format!("[env: {name}"));
        assert!(is_known, "{name} is no setting");
    }
    for line in [
        "SOLDONCE_LEASE_URL=redis://a redis://b redis://c\n",
        "SOLDONCE_LIMIT_HELD=1000000\n",
    ] {
        assert!(settings.contains(line), "{settings}");
    }
    let shown = ends_well(&mut command);
    for told in ["0.0.0.0:8081", "10.0.0.0/8, 192.0.2.1 "] {
        assert!(shown.contains(told), "{shown}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_recipe_of_the_image_is_as_hadolint_wants_it() {
    let recipe = deploy("image/Dockerfile");
    ends_well(Command::new(judges().join("bin/hadolint")).arg(recipe));
}

/// What a compose file says of each service: whether it starts again, and by what it counts as well.
const SERVICES_OF_COMPOSE: &str = "
import sys, yaml
for name, service in yaml.safe_load(open(sys.argv[1]))['services'].items():
    print(name, service.get('restart'), *service.get('healthcheck', {}).get('test', []))
";

#[test]
fn the_compose_file_starts_again_what_ended_and_migrates_when_connections_are_taken() {
    let file = deploy("compose.yaml");
    let services = python(&["-c", SERVICES_OF_COMPOSE, file.to_str().unwrap()]);
    let expected = [
        "postgres unless-stopped CMD pg_isready -h 127.0.0.1 -U soldonce",
        "redis unless-stopped",
        "migrate None",
        "server unless-stopped",
    ];
    assert_eq!(services.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn init_completions_and_man_write_what_an_installation_needs() {
    let place = folder("packages-init").join("made");
    let at = place.display().to_string();
    let (code, said) = run(&["init", &at]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("next: soldonce serve --config "), "{said}");
    // Its folder is no checkout.
    let compose = std::fs::read_to_string(place.join("compose.yaml")).unwrap();
    assert!(!compose.contains("build:"), "{compose}");
    let config = place.join("soldonce.toml");
    let settings = [
        "serve",
        "--print-settings",
        "--config",
        config.to_str().unwrap(),
    ];
    let (code, said) = run(&settings);
    assert_eq!(code, Some(0), "{said}");
    std::fs::write(&config, "feed_tick_ms = 50\n").unwrap();
    let (_, said) = run(&["init", &at]);
    assert!(said.contains("soldonce.toml stays as it is"), "{said}");
    assert_eq!(
        std::fs::read_to_string(&config).unwrap(),
        "feed_tick_ms = 50\n"
    );
    for shell in ["bash", "zsh", "fish"] {
        let (code, said) = run(&["completions", shell]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("free-sales"), "{shell}");
    }
    let (code, said) = run(&["man", &at]);
    assert_eq!(code, Some(0), "{said}");
    let page = std::fs::read_to_string(place.join("soldonce-serve.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("tls"), "{page}");
    std::fs::remove_dir_all(&place).unwrap();
}
