// Servers for the checks and clients of them. Servers die with this process.
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {createRequire} from 'node:module';
import path from 'node:path';

const [modules, sluice, model] = process.argv.slice(2);
export const {default: OpenAI} = createRequire(path.join(modules, 'any.js'))('openai');

const READY_MS = 60_000;

export class Server {
  // Started on a free port; resolves when it is ready.
  static async start(...flags) {
    const server = new Server(flags);
    await server.ready;
    return server;
  }

  constructor(flags) {
    this.log = '';
    this.key = 'none';
    this.child = spawn(
        sluice, ['serve', model, '--port', '0', '--threads', '2', ...flags],
        {stdio: ['ignore', 'ignore', 'pipe']});
    this.exit = once(this.child, 'exit');
    this.child.stderr.setEncoding('utf8');
    this.ready = new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`not ready in time: ${this.log}`)), READY_MS);
      this.child.once('exit', () => reject(new Error(`the server ended: ${this.log}`)));
      this.child.stderr.on('data', (text) => {
        this.log += text;
        const found = this.log.match(/ready on (http:\S+)\/v1/);
        if (!found) return;
        clearTimeout(late);
        this.url = found[1];
        resolve();
      });
    });
    process.once('exit', () => this.child.kill('SIGKILL'));
  }

  // Retries off, so that a check sees each answer; `options` are the client's.
  client(options = {}) {
    return new OpenAI({baseURL: `${this.url}/v1`, apiKey: this.key, maxRetries: 0, ...options});
  }

  async get(what) {
    const headers = {Authorization: `Bearer ${this.key}`};
    return (await fetch(this.url + what, {headers})).json();
  }

  // Those that run and wait.
  async requests() {
    return (await this.get('/v1/requests')).data;
  }

  async idle() {
    await eventually(async () => (await this.requests()).length === 0, 'no request is left');
  }

  // SIGTERM; resolves to the exit status.
  async stop() {
    this.child.kill('SIGTERM');
    const [status] = await this.exit;
    return status;
  }
}

// The one that most checks share.
export const main = await Server.start('--parallel', '4', '--queue', '8');
export const client = main.client();

// The model's end-of-reply token: banned, a reply goes on for as long as it may.
export const END_TOKEN = 3842;

export const user = (content) => [{role: 'user', content}];
export const italy = {model: 'tiny-k3', messages: user('What is the capital of Italy?'), temperature: 0};
export const france = {model: 'tiny-k3', prompt: 'The capital of France is', temperature: 0};
export const endless = {
  model: 'tiny-k3',
  prompt: 'The days of the week are',
  logit_bias: {[END_TOKEN]: -100},
  max_tokens: 4000,
};

export async function eventually(holds, what, seconds = 20) {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`never: ${what}`);
}

export async function tokenize(body) {
  return client.post(`${main.url}/tokenize`, {body});
}

// A chat stream put together: choices with all their text, and the chunks as they came.
export async function gather(stream) {
  const chunks = [];
  const choices = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
    for (const {index, delta, finish_reason, logprobs} of chunk.choices) {
      const choice = choices[index] ??=
          {content: '', reasoning: '', calls: [], logprobs: [], finish: null};
      choice.content += delta.content ?? '';
      choice.reasoning += delta.reasoning_content ?? '';
      choice.logprobs.push(...logprobs?.content ?? []);
      choice.finish = finish_reason ?? choice.finish;
      for (const {index: at, id, function: part} of delta.tool_calls ?? []) {
        const call = choice.calls[at] ??= {id, name: part.name, arguments: ''};
        call.arguments += part.arguments;
      }
    }
  }
  return {chunks, choices, usage: chunks.at(-1).usage};
}

// The same shape from a whole reply.
export function choicesOf(reply) {
  return reply.choices.map(({message, finish_reason, logprobs}) => ({
    content: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    calls: (message.tool_calls ?? [])
               .map(({id, function: made}) => ({id, name: made.name, arguments: made.arguments})),
    logprobs: logprobs?.content ?? [],
    finish: finish_reason,
  }));
}
