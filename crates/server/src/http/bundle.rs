//! Sends the page's modules as one: each becomes a function that returns what it exports, in the
//! order in which they need each other. Knows the forms of `import` and `export` that the page
//! uses. Where it meets another one it gathers none: then the modules are sent one by one.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The modules that a page loads by itself, before the others: they stay modules of their own.
pub(super) struct Plan<'a> {
    /// Every module by its file name.
    pub(super) modules: &'a BTreeMap<String, String>,
    /// What the page loads by itself.
    pub(super) apart: &'a [&'a str],
}

/// Builds one module that exports what `root` does and has all that it imports, but for what is
/// apart. None where a form of `import` or `export` is not known, or imports are a circle.
pub(super) fn bundle(plan: &Plan<'_>, root: &str) -> Option<String> {
    let mut gathered = BundleWriter {
        plan,
        open: Vec::new(),
        done: Vec::new(),
        text: String::new(),
    };
    for name in plan.apart {
        writeln!(
            gathered.text,
            "import * as {} from \"./{name}\";",
            object(name)
        )
        .ok()?;
    }
    gathered.add(root)?;
    let exports = Module::read(plan.modules.get(root)?)?.exports.join(", ");
    writeln!(
        gathered.text,
        "export const {{ {exports} }} = {};",
        object(root)
    )
    .ok()?;
    Some(gathered.text)
}

struct BundleWriter<'a> {
    plan: &'a Plan<'a>,
    /// Modules whose imports are being added: one of them again is a circle.
    open: Vec<String>,
    done: Vec<String>,
    text: String,
}

impl BundleWriter<'_> {
    fn add(&mut self, name: &str) -> Option<()> {
        let is_here = |known: &String| known == name;
        if self.plan.apart.contains(&name) || self.done.iter().any(is_here) {
            return Some(());
        }
        if self.open.iter().any(is_here) {
            return None;
        }
        self.open.push(name.to_owned());
        let module = Module::read(self.plan.modules.get(name)?)?;
        for (_, from) in &module.imports {
            self.add(from)?;
        }
        self.open.pop();
        self.done.push(name.to_owned());
        writeln!(self.text, "const {} = (() => {{", object(name)).ok()?;
        for (names, from) in module.imports.iter().filter(|(names, _)| !names.is_empty()) {
            let names = names.join(", ");
            writeln!(self.text, "const {{ {names} }} = {};", object(from)).ok()?;
        }
        let exports = module.exports.join(", ");
        self.text.push_str(&module.body);
        writeln!(self.text, "return {{ {exports} }};\n}})();").ok()
    }
}

/// Returns the name of the object that has what a module exports.
fn object(name: &str) -> String {
    format!("${}", name.trim_end_matches(".js"))
}

#[derive(Default)]
struct Module {
    /// The imported names, and the module that they are of.
    imports: Vec<(Vec<String>, String)>,
    exports: Vec<String>,
    body: String,
}

impl Module {
    /// Parses a module. `import` and `export` statements begin a line; no other line begins so.
    fn read(text: &str) -> Option<Self> {
        let mut module = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let is_list = line.starts_with("import ") || line.starts_with("export {");
            if !is_list {
                module.declare(line)?;
                continue;
            }
            let mut statement = line.to_owned();
            while !statement.ends_with(';') {
                statement.push(' ');
                statement.push_str(lines.next()?.trim());
            }
            match statement.strip_prefix("import ") {
                Some(import) => module.imports.push(imported(import)?),
                None => module
                    .exports
                    .extend(listed(statement.strip_prefix("export ")?)?),
            }
        }
        Some(module)
    }

    /// Takes a line as it is, but for the word `export` before a declaration.
    fn declare(&mut self, line: &str) -> Option<()> {
        let declaration = line.strip_prefix("export ");
        if let Some(declaration) = declaration {
            let kinds = ["async function ", "function ", "class ", "const "];
            let named = kinds
                .iter()
                .find_map(|kind| declaration.strip_prefix(kind))?;
            let end = named.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
            self.exports
                .push(named.get(..end).filter(|name| !name.is_empty())?.to_owned());
        }
        self.body.push_str(declaration.unwrap_or(line));
        self.body.push('\n');
        Some(())
    }
}

/// Reads `{ a, b as c } from "./x.js";` or `"./x.js";`.
fn imported(statement: &str) -> Option<(Vec<String>, String)> {
    let (names, from) = match statement.split_once(" from ") {
        Some((names, from)) => (listed(names)?, from),
        None => (Vec::new(), statement),
    };
    let from = from.strip_prefix("\"./")?.strip_suffix("\";")?;
    Some((names, from.to_owned()))
}

/// Parses the names between braces, into the pattern of an object (`a as b` is `a: b`).
fn listed(text: &str) -> Option<Vec<String>> {
    let text = text.trim().trim_end_matches(';');
    let names = text.strip_prefix('{')?.strip_suffix('}')?.split(',');
    let patterns = names.map(|name| name.trim().replace(" as ", ": "));
    Some(patterns.filter(|name| !name.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(modules: &[(&str, &str)]) -> Option<String> {
        let modules = modules.iter();
        let modules = modules
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        let plan = Plan {
            modules: &modules,
            apart: &["theme.js"],
        };
        bundle(&plan, "main.js")
    }

    #[test]
    fn each_module_comes_after_what_it_imports_and_once() {
        let text = gathered(&[
            (
                "main.js",
                "import \"./side.js\";\nimport {\n  a,\n  b as c,\n} from \"./part.js\";\nimport { dark } from \"./theme.js\";\nexport const e = a(c, dark);\n",
            ),
            ("side.js", "import { a } from \"./part.js\";\na(1);\n"),
            (
                "part.js",
                "const hidden = 1;\nexport function a() {}\nexport const b = hidden;\nexport { hidden };\n",
            ),
        ]);
        let expected = "import * as $theme from \"./theme.js\";\n\
            const $part = (() => {\nconst hidden = 1;\nfunction a() {}\nconst b = hidden;\nreturn { a, b, hidden };\n})();\n\
            const $side = (() => {\nconst { a } = $part;\na(1);\nreturn {  };\n})();\n\
            const $main = (() => {\nconst { a, b: c } = $part;\nconst { dark } = $theme;\nconst e = a(c, dark);\nreturn { e };\n})();\n\
            export const { e } = $main;\n";
        assert_eq!(text.as_deref(), Some(expected));
    }

    #[test]
    fn what_it_does_not_know_it_leaves_alone() {
        for text in [
            "export default 1;\n",
            "export let a = 1;\n",
            "import a from \"./part.js\";\n",
            "import * as a from \"./part.js\";\n",
            "import { a } from \"far\";\n",
            "import { a } from \"./none.js\";\n",
            "import { a } from \"./main.js\";\n",
            "import { a }",
        ] {
            assert_eq!(
                gathered(&[("main.js", text), ("part.js", "")]),
                None,
                "{text}"
            );
        }
    }
}
