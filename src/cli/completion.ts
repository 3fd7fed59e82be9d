import { Argument, type Command, Option } from "commander";
import type { Terminal } from "./terminal.js";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];
const BINARIES = ["polygateway", "pgw"] as const;

interface CompletableCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly Option[];
  /** Fixed words its first argument may be; empty = file names. */
  readonly words: readonly string[];
}

/** Those of the commands below it too: `telemetry prune --dry-run`. */
function optionsOf(command: Command): Option[] {
  return [...command.options, ...command.commands.flatMap(optionsOf)];
}

function commandsOf(program: Command): CompletableCommand[] {
  return program.commands.map((command) => ({
    name: command.name(),
    summary: command.summary() || command.description(),
    options: [...optionsOf(command), new Option("-h, --help", "show help")],
    words: command.registeredArguments[0]?.argChoices ?? command.commands.map((below) => below.name()),
  }));
}

function flagsOf(options: readonly Option[]): string[] {
  return options.flatMap((option) => [option.short, option.long]).filter((flag) => flag !== undefined && flag !== null);
}

function bashScript(commands: readonly CompletableCommand[]): string {
  const branches = commands.map(({ name, options, words }) => {
    const values = words.length > 0 ? `\n      else COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$cur"))` : "";
    return `    ${name})
      if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W "${flagsOf(options).join(" ")}" -- "$cur"))${values}
      fi ;;`;
  });
  return `# ${BINARIES[0]} completion for bash. To use it now and later:
#   polygateway completion bash > ~/.local/share/bash-completion/completions/polygateway
_polygateway() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" command="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ "\${COMP_WORDS[i]}" != -* ]]; then command="\${COMP_WORDS[i]}"; break; fi
  done
  case "$command" in
    "") COMPREPLY=($(compgen -W "${commands.map((c) => c.name).join(" ")} --help --version" -- "$cur")) ;;
${branches.join("\n")}
  esac
}
complete -o default -F _polygateway ${BINARIES.join(" ")}
`;
}

function zshQuote(text: string): string {
  return text
    .replace(/[[\]\\:]/g, "\\$&")
    .replaceAll("'", "'\\''")
    .replaceAll("`", "");
}

function zshOption(option: Option): string[] {
  const value = option.required || option.optional ? ":value:_files" : "";
  return flagsOf([option]).map((flag) => `'${flag}[${zshQuote(option.description)}]${value}'`);
}

function zshScript(commands: readonly CompletableCommand[]): string {
  const list = commands.map(({ name, summary }) => `    '${name}:${zshQuote(summary)}'`);
  const branches = commands.map(({ name, options, words }) => {
    const rest = words.length > 0 ? `'2:value:(${words.join(" ")})'` : "'*:file:_files'";
    return `    ${name}) _arguments '1: :' ${[...options.flatMap(zshOption), rest].join(" \\\n      ")} ;;`;
  });
  return `#compdef ${BINARIES.join(" ")}
# ${BINARIES[0]} completion for zsh. To use it, with a folder of $fpath:
#   polygateway completion zsh > ~/.zfunc/_polygateway
_polygateway() {
  local -a commands
  commands=(
${list.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
${branches.join("\n")}
  esac
}
compdef _polygateway ${BINARIES.join(" ")}
`;
}

function fishQuote(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

function fishScript(commands: readonly CompletableCommand[]): string {
  const lines = ["# polygateway completion for fish. To use it:"];
  lines.push("#   polygateway completion fish > ~/.config/fish/completions/polygateway.fish");
  for (const binary of BINARIES) {
    for (const { name, summary, options, words } of commands) {
      lines.push(`complete -c ${binary} -n __fish_use_subcommand -a ${name} -d ${fishQuote(summary)}`);
      const within = `complete -c ${binary} -n '__fish_seen_subcommand_from ${name}'`;
      if (words.length > 0) lines.push(`${within} -f -a ${fishQuote(words.join(" "))}`);
      for (const option of options) {
        const long = option.long ? ` -l ${option.long.slice(2)}` : "";
        const short = option.short ? ` -s ${option.short.slice(1)}` : "";
        const value = option.required ? " -r" : "";
        lines.push(`${within}${short}${long}${value} -d ${fishQuote(option.description)}`);
      }
    }
  }
  return `${lines.join("\n")}\n`;
}

const SCRIPTS: Record<Shell, (commands: readonly CompletableCommand[]) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function registerCompletion(program: Command, terminal: Terminal): void {
  program
    .command("completion")
    .summary("print a shell completion script")
    .description("Print the completion script of a shell; where to put it stands in its first lines.")
    .addArgument(new Argument("<shell>", "the shell to write it for").choices(SHELLS))
    .addHelpText("after", '\nExample:\n  eval "$(polygateway completion bash)"')
    .action((shell: Shell) => {
      terminal.stdout.write(SCRIPTS[shell](commandsOf(program)));
    });
}
