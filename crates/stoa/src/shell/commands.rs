//! What the shell's own commands do.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use stoa_env::{private_files, timer};
use stoa_error::{Error, Result};

use super::format::output_error;
use super::meta::{self, Meta};
use super::output::Output;
use super::runner::{Next, Shell};
use super::source::{LineSource, TextSource};
use super::splitter::Splitter;

/// Files that include files, at most so deep.
const INCLUDES_MAX: usize = 16;

impl Shell {
    /// Runs one command; `splitter` has the statement that was being typed before it.
    pub(super) async fn run_command(
        &mut self,
        line: &str,
        splitter: &mut Splitter,
        source: &mut dyn LineSource,
        depth: usize,
    ) -> Result<Next> {
        let command = match meta::parse(line) {
            Ok(command) => command,
            Err(error) => return Ok(self.show_error(&error, line, false)),
        };
        match command {
            Meta::Run(statement) => {
                let last = self.last.take();
                let next = self.run_statement(&statement, source).await;
                self.last = last;
                return next;
            }
            Meta::Go { expanded, to } => {
                return match self.take_statement(splitter) {
                    Ok(statement) => self.go(&statement, expanded, to.as_deref(), source).await,
                    Err(error) => Ok(self.show_error(&error, line, false)),
                };
            }
            Meta::Watch { pause, times } => {
                return match self.take_statement(splitter) {
                    Ok(statement) => self.watch(&statement, pause, times, source).await,
                    Err(error) => Ok(self.show_error(&error, line, false)),
                };
            }
            Meta::Edit(file) => {
                return match self.edit(file.as_deref(), splitter) {
                    Ok(()) => Ok(Next::Continue),
                    Err(error) => Ok(self.show_error(&error, line, false)),
                };
            }
            Meta::Output(target) => {
                if let Err(error) = self.redirect(target.as_deref()) {
                    return Ok(self.show_error(&error, line, false));
                }
            }
            Meta::Include(path) => return self.include(&path, depth).await,
            Meta::Quit => return Ok(Next::Stop),
            Meta::Print => {
                let pending = splitter.pending();
                let held =
                    if pending.is_empty() { self.last.clone() } else { Some(pending.into()) };
                self.say(&held.unwrap_or_else(|| "No statement yet.".to_owned()))?;
            }
            Meta::Reset => {
                splitter.clear();
                self.say("Discarded the statement.")?;
            }
            Meta::Pager(on) => {
                self.pager = on.unwrap_or(!self.pager);
                self.say(&format!("The pager is {}.", on_off(self.pager)))?;
            }
            Meta::Timing(on) => {
                self.options.timing = on.unwrap_or(!self.options.timing);
                self.say(&format!("Timing is {}.", on_off(self.options.timing)))?;
            }
            Meta::Expanded(on) => {
                self.options.expanded = on.unwrap_or(!self.options.expanded);
                self.say(&format!("Expanded display is {}.", on_off(self.options.expanded)))?;
            }
            Meta::Format(format) => self.options.format = format,
            Meta::Echo(text) => {
                writeln!(self.out, "{text}")
                    .and_then(|()| self.out.flush())
                    .map_err(output_error)?;
            }
            Meta::Place => self.say(&format!("Statements run on {}.", self.backend.place()))?,
            Meta::Help => self.say(meta::HELP.trim_end())?,
        }
        Ok(Next::Continue)
    }

    /// The statement before a command, or the newest one.
    fn take_statement(&mut self, splitter: &mut Splitter) -> Result<String> {
        splitter.take_rest().or_else(|| self.last.clone()).ok_or_else(|| {
            Error::invalid("there is no statement to run yet")
                .with_hint("write it before the command, as in SELECT 1 \\g")
        })
    }

    /// `\g`: runs a statement, whose rows go where it says.
    async fn go(
        &mut self,
        statement: &str,
        expanded: bool,
        to: Option<&str>,
        source: &mut dyn LineSource,
    ) -> Result<Next> {
        let before = match to.map(Output::named).transpose() {
            Ok(named) => named.map(|output| std::mem::replace(&mut self.out, output)),
            Err(error) => return Ok(self.show_error(&error, statement, false)),
        };
        let was_expanded = self.options.expanded;
        self.options.expanded |= expanded;
        let next = self.run_statement(statement, source).await;
        self.options.expanded = was_expanded;
        let Some(before) = before else { return next };
        match std::mem::replace(&mut self.out, before).finish() {
            Ok(()) => next,
            Err(error) => Ok(self.show_error(&error, statement, false)),
        }
    }

    /// `\watch`: runs a statement until Ctrl-C, an error, or as often as was asked for.
    async fn watch(
        &mut self,
        statement: &str,
        pause: Duration,
        times: Option<u64>,
        source: &mut dyn LineSource,
    ) -> Result<Next> {
        let mut done = 0;
        loop {
            let now = stoa_env::clock::now_utc().format("%Y-%m-%d %H:%M:%S UTC");
            self.say(&format!("{now} (every {} s)", pause.as_secs_f64()))?;
            let failures = self.failures;
            let next = self.run_statement(statement, source).await?;
            done += 1;
            let is_over = next == Next::Stop || self.failures > failures;
            if is_over || times.is_some_and(|times| done >= times) {
                return Ok(next);
            }
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => return Ok(Next::Continue),
                () = timer::sleep(pause) => {}
            }
        }
    }

    /// `\e`: what the editor leaves in the file is as if it had been typed.
    fn edit(&mut self, file: Option<&str>, splitter: &mut Splitter) -> Result<()> {
        let path = match file {
            Some(file) => file.into(),
            None => {
                let name = format!("stoa-edit-{}.sql", stoa_env::random::uuid());
                let path = std::env::temp_dir().join(name);
                let held = splitter.pending();
                let held = if held.is_empty() { self.last.as_deref().unwrap_or("") } else { held };
                private_files::write(&path, format!("{held}\n").as_bytes()).map_err(|e| {
                    Error::unavailable(format!("cannot write {}", path.display())).with_source(e)
                })?;
                path
            }
        };
        let edited = run_editor(&path).and_then(|()| {
            std::fs::read_to_string(&path).map_err(|e| {
                Error::unavailable(format!("cannot read {}", path.display())).with_source(e)
            })
        });
        if file.is_none() {
            // A file that the editor has removed is gone already.
            let _ = std::fs::remove_file(&path);
        }
        let text = edited?;
        self.say(text.trim_end())?;
        splitter.clear();
        text.lines().for_each(|line| splitter.push_line(line));
        Ok(())
    }

    /// `\o`: rows go elsewhere from now on.
    fn redirect(&mut self, target: Option<&str>) -> Result<()> {
        let output = target.map_or_else(|| Ok(Output::stdout()), Output::named)?;
        std::mem::replace(&mut self.out, output).finish()
    }

    /// Rows go to stdout again.
    pub(super) fn end_output(&mut self) -> Result<()> {
        self.redirect(None)
    }

    async fn include(&mut self, path: &str, depth: usize) -> Result<Next> {
        let opened = match depth < INCLUDES_MAX {
            true => TextSource::open(path),
            false => Err(Error::invalid(format!("{path}: files include each other too deep"))),
        };
        match opened {
            Ok(mut file) => Box::pin(self.run_nested(&mut file, depth + 1)).await,
            Err(error) => Ok(self.show_error(&error, "", false)),
        }
    }
}

/// Runs the user's editor on a file and waits for it.
fn run_editor(path: &std::path::Path) -> Result<()> {
    let editor = ["VISUAL", "EDITOR"].iter().filter_map(std::env::var_os);
    let editor =
        editor.into_iter().find(|editor| !editor.is_empty()).unwrap_or_else(|| "vi".into());
    // The variable may have arguments, as in "code --wait".
    let mut command = Command::new("sh");
    command.arg("-c").arg("exec $STOA_SHELL_EDITOR \"$1\"").arg("sh").arg(path);
    let ended = command.env("STOA_SHELL_EDITOR", &editor).status();
    let shown = editor.to_string_lossy();
    let ended = ended.map_err(|e| {
        Error::unavailable(format!("cannot start the editor {shown}")).with_source(e)
    })?;
    match ended.success() {
        true => Ok(()),
        false => Err(Error::unavailable(format!("the editor {shown} ended with {ended}"))
            .with_hint("set EDITOR to the command of your editor")),
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
