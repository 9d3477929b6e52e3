// Requests to the server that the page came from.

/** A model as /v1/models describes it. */
export interface Model {
  id: string;
  task: string;
  /** What the model can do: the page chooses its view by it. */
  capability: string;
  languages: string[];
  /** Target languages of a multilingual translator. */
  targets: string[];
  parameters: number;
  /** What an export without a PyTorch model cannot do: "stream", "alignment", "explain". */
  supports: string[];
  input: { kind: "text" | "image" | "audio"; size?: [number, number] | null; channels?: number; rate?: number };
}

/** What the server says about a request that it did not answer. */
export class RequestError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Send a request and return the answer; an answer that is an error becomes an exception with the server's words. */
export async function request(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const options: RequestInit = { signal };
  if (body instanceof FormData) Object.assign(options, { method: "POST", body });
  else if (body !== undefined)
    Object.assign(options, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    });
  let response: Response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("The server does not answer.");
  }
  if (!response.ok) throw new RequestError(await readError(response), response.status);
  return response;
}

async function readError(response: Response): Promise<string> {
  const content = await response.json().catch(() => null);
  const text = content?.error?.message ?? content?.error ?? content?.detail;
  const wait = response.headers.get("Retry-After");
  const message = typeof text === "string" ? text : `The server answered ${response.status}.`;
  return wait ? `${message} Try again in ${wait} s.` : message;
}

/** Send a request and call `receive` with each event of its stream. */
export async function stream(
  path: string,
  body: unknown,
  receive: (event: any) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await request(path, body, signal);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("The answer broke off.");
    const events = (rest + value).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const content = JSON.parse(data);
      if (content.error) throw new Error(content.error.message ?? String(content.error));
      receive(content);
    }
  }
}
