import { ocrReaderOf, readsLayout } from "../domain/ocr-ability.js";
import type { ConfigProblem } from "../errors.js";
import type { ConfigNote, Subject } from "./invariants.js";

/** A prompt that nobody would be asked is a mistake about the source. */
export function promptRules({ config, labels, positions, usable }: Subject): ConfigProblem[] {
  return config.sources.flatMap((source, index) =>
    (["ocrPrompt", "ocrLayoutPrompt"] as const).flatMap((option) => {
      const path = (name: string): string => `sources[${positions[index]}].${name}`;
      const judged = [option, "transport", "ocrReader", "model"].map(path);
      if (source[option] === undefined || !judged.every((each) => usable(each))) return [];
      const key = labels.key(path(option));
      if (source.transport !== "vlm") {
        const problem = `is a prompt, and a source with ${labels.key(path("transport"))} = ${source.transport} is sent none of this kind`;
        return [{ key, problem, remedy: "Leave it out, or make the source one with transport vlm." }];
      }
      if (option === "ocrPrompt" || readsLayout(source)) return [];
      const problem = `asks for a layout, and ${source.model}, read as ${ocrReaderOf(source)}, tells no places on the page`;
      const remedy = `Leave it out, or set ${labels.key(path("ocrReader"))} to dots-ocr or deepseek-ocr, whose form of answer is read.`;
      return [{ key, problem, remedy }];
    }),
  );
}

/** Valid for OCR too, but probably not meant. */
export function ocrWarnings({ config, labels, positions }: Subject): ConfigNote[] {
  return config.sources.flatMap((source, index): ConfigNote[] => {
    const path = (option: string): string => `sources[${positions[index]}].${option}`;
    const found: ConfigNote[] = [];
    const isChat = source.transport === "vlm";
    if (!isChat && Object.keys(source.extraBody).length > 0) {
      const text = `is not sent to an OCR server (${source.transport}): it applies to chat alone`;
      found.push({ key: labels.key(path("extraBody")), level: "warning", text });
    }
    if (!isChat && source.ocrReader !== "auto") {
      const text = `has no effect on ${source.transport}: it says how a vlm source is read`;
      found.push({ key: labels.key(path("ocrReader")), level: "warning", text });
    }
    if (!isChat && source.tpm > 0) {
      const text = `has no effect on ${source.transport}, which reports no tokens: RPM and MAX_CONCURRENCY govern it`;
      found.push({ key: labels.key(path("tpm")), level: "warning", text });
    }
    return found;
  });
}
