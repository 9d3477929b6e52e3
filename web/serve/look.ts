// The page at `/look`: ask the server to explain a sentence, then start the program of `regard look` with the document.

import { report } from "../report.ts";
import { request } from "./api.ts";
import { readInside } from "./inside.ts";

const find = (id: string): HTMLElement => document.getElementById(id)!;
void start();

async function start(): Promise<void> {
  const status = find("status");
  try {
    const body = readInside();
    if (body === null) throw new Error("Nothing to show: choose “See inside” next to a translation.");
    const { explanation } = await (await request("translate", { ...body, explain: true })).json();
    find("document").textContent = JSON.stringify(explanation);
    document.title = `${explanation.text} · Regard`;
    status.remove();
    const script = document.createElement("script"); // the policy of the page knows its hash
    script.textContent = find("program").textContent;
    document.body.append(script);
  } catch (error) {
    report(status, (error as Error).message, true);
  }
}
