// What a command of `bullion` is. One file in commands/, one line in registry.ts.
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** How a command ends; stable, for scripts. */
export const exitCodes = {
  done: 0,
  /** Refused by the cluster, or what was asked for came to a bad end. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  notFound: 3,
  /** Still not over when the time given with --timeout was. */
  timedOut: 4,
  /** By Ctrl-C, as shells have it: 128 and the number of SIGINT. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** How help calls the value: `SIZE`. Left out for switches. */
  readonly value?: string;
  readonly help: string;
  /** All there are, where they are few: completion offers them, others are refused. */
  readonly oneOf?: readonly string[];
  /** Beside those, a value that begins so. */
  readonly orPrefix?: string;
  /** May be given more than once. */
  readonly multiple?: true;
}
export type Options = Readonly<Record<string, OptionSpec>>;

export type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** Where a command writes, and what time it is there. */
export interface Terminal {
  out(text: string): void;
  /** Progress and complaints: never part of what a script reads. */
  err(text: string): void;
  /** Whether a person watches `err`: progress may overwrite its own line. */
  readonly isLive: boolean;
  /** Whether `err` says nothing of progress: --quiet. */
  readonly isQuiet?: boolean | undefined;
  /** Whether `err` shows colours: a terminal, and no NO_COLOR. */
  readonly hasColors?: boolean | undefined;
  /** Of the screen that `err` is shown on, now: it may have been resized. */
  width?(): number | undefined;
  now(): Date;
  /** Whether `out` shows colours: a terminal, and no NO_COLOR. */
  readonly showsColors?: boolean | undefined;
  /** Of the screen that `out` is shown on; `undefined`: it is read by a program. */
  readonly columns?: number | undefined;
}

export interface Surroundings {
  readonly terminal: Terminal;
  /** Ends waits; set off by Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface CommandLine {
  readonly positionals: readonly string[];
  readonly values: Values;
}

export interface Call extends CommandLine, Surroundings {
  readonly kube: KubeClient;
  /** Token that the API server is shown; `undefined`: it knows the caller by something else. */
  readonly bearer: () => Promise<string | undefined>;
  /** Of --namespace, else of the kubeconfig's context, else `default`. */
  readonly namespace: string;
}

interface Description {
  readonly name: string;
  /** What stands behind the name in help: `<name> <url>`. As many positional arguments as it has words, `[…]` ones may be left out, and `[name…]` may be repeated. */
  readonly arguments: string;
  readonly summary: string;
  /** Paragraphs of help beyond the summary. */
  readonly more?: string;
  readonly options: Options;
  /** What completion offers for the first argument: these words, or names of objects: what `bullion get` takes for their kind. */
  readonly completes?: string | readonly string[];
}

export interface ClusterCommand extends Description {
  run(call: Call): Promise<ExitCode>;
}

/** Works without a cluster. */
export interface PlainCommand extends Description {
  runPlain(call: CommandLine & Surroundings): Promise<ExitCode>;
}

export type Command = ClusterCommand | PlainCommand;

/** A string option; `undefined` when it was not given. */
export const textOf = (values: Values, name: string): string | undefined => {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
};

/** Every value of an option that may be given more than once. */
export const listOf = (values: Values, name: string): readonly string[] => {
  const value = values[name];
  return Array.isArray(value) ? value : [];
};
