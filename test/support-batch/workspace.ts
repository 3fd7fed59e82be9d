import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Finished, makeFolder, type Running, startCli } from "../cli-harness.js";

/** A folder of its own and the commands that run in it; what still runs at the end is killed. */
export interface Workspace {
  readonly folder: string;
  path(name: string): string;
  write(name: string, content: string | Buffer): string;
  start(args: readonly string[], env?: Record<string, string>, input?: string): Running;
  run(args: readonly string[], env?: Record<string, string>, input?: string): Promise<Finished>;
  close(): Promise<void>;
}

export function openWorkspace(): Workspace {
  const { path: folder, remove } = makeFolder();
  const started = new Set<Running>();
  const path = (name: string): string => join(folder, name);

  function start(args: readonly string[], env?: Record<string, string>, input?: string): Running {
    const running = startCli(args, {
      folder,
      ...(env === undefined ? {} : { env }),
      ...(input === undefined ? {} : { input }),
    });
    started.add(running);
    void running.finished.then(() => started.delete(running));
    return running;
  }

  return {
    folder,
    path,
    write(name, content) {
      writeFileSync(path(name), content);
      return path(name);
    },
    start,
    run: (args, env, input) => start(args, env, input).finished,
    async close() {
      const ends = [...started].map(({ child, finished }) => {
        child.kill("SIGKILL");
        return finished;
      });
      await Promise.all(ends);
      remove();
    },
  };
}
