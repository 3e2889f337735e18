// An agent of the OpenAI Agents SDK. Its tools are run side by side and take unlike times.
const modules = process.env.MODULES;
const { Agent, run, tool } = require(modules + '/@openai/agents');
const { z } = require(modules + '/zod');
const fs = require('node:fs');

const after = (ms, text) => new Promise((done) => setTimeout(() => done(text), ms));
const says = (name, ms) => tool({
  name, description: name, parameters: z.object({ text: z.string() }),
  execute: ({ text }) => after(ms(), `${name}: ${text}`),
});
const write = tool({
  name: 'write', description: 'write a file', parameters: z.object({ path: z.string(), text: z.string() }),
  execute: ({ path, text }) => { fs.writeFileSync(path, text); return 'written'; },
});

(async () => {
  const agent = new Agent({
    name: 'gardener', model: 'gpt-5', instructions: 'Answer in the manner of a gardener.',
    tools: [says('slow', () => 150 * Math.random()), says('quick', () => 150 * Math.random()), write],
  });
  const answer = await run(agent, process.argv[2], { stream: true });
  await answer.completed;
  console.log(answer.finalOutput);
})();
