// What operators do to an agent: ping it, end its key, retire it. What cannot be undone asks first, by our id.
/** @jsxImportSource #jsx */
import type { AgentRow } from "../db/schema.ts";
import * as messages from "../hub/messages.ts";
import * as retirement from "../hub/retirement.ts";
import { sha256 } from "../protocol/canonical.ts";
import { newSecret } from "../protocol/ids.ts";
import { MAX_HOPS_DEFAULT } from "../protocol/messages.ts";
import { act, personOf } from "./acts.tsx";
import { type AgentData, load, visibleAgent } from "./agent-data.ts";
import { agentLink, composeLink, link } from "./links.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Act, Button } from "./ui/button.tsx";
import { ConfirmDialog } from "./ui/dialog.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";
import { shortId } from "./ui/reference.tsx";
import { Name, visible } from "./ui/untrusted.tsx";

const PING = "Ping from the operator: please reply with one line on what you are doing and what you wait for.";
const PING_TTL_MS = 600_000;

/** The buttons at the head of an agent's page. */
export const HeadActs = ({ data: { agent, leases, work }, visit }: { data: AgentData; visit: Visit }) => {
  const { csrf, project } = visit;
  const to = (name: string) => `/agents/${agent.id}/${name}`;
  if (agent.retiredAt !== null) return null;
  return (
    <>
      <Button icon="send" href={composeLink([agent.id], { project: agent.project })} hotkey="c">
        Message
      </Button>
      <Act action={to("ping")} csrf={csrf}>
        <Button icon="signal" type="submit">
          Ping
        </Button>
      </Act>
      <Button icon="lock" opens="end-key" href={link(to("end"), { project, act: "end-key" })}>
        End key…
      </Button>
      <ConfirmDialog
        id="end-key"
        title={`End the key of ${shortId(agent.id)}?`}
        action={to("end-key")}
        csrf={csrf}
        target="#end-key"
        confirm="End the key"
        cancel="Keep it"
      >
        <EndKeyWords id={agent.id} />
      </ConfirmDialog>
      <Button kind="warn" opens="retire" href={link(to("end"), { project, act: "retire" })}>
        Retire…
      </Button>
      <ConfirmDialog
        id="retire"
        title={`Retire ${shortId(agent.id)}?`}
        action={to("retire")}
        csrf={csrf}
        target="#retire"
        confirm="Retire"
        cancel="Keep it"
      >
        <RetireWords id={agent.id} leases={leases.length} open={work.openIn + work.openOut} />
      </ConfirmDialog>
    </>
  );
};

const EndKeyWords = ({ id }: { id: string }) => (
  <p>
    Its key stops working at once and its streams end. What it holds and what waits for it stays. It is back as soon as it registers again.{" "}
    <code>{id}</code>
  </p>
);
const RetireWords = ({ id, leases, open }: { id: string; leases: number; open: number }) => (
  <p>
    It holds {leases} {leases === 1 ? "lease" : "leases"} and has {open} open {open === 1 ? "message" : "messages"}. Its leases go to whoever waits,
    its messages are cancelled, its key stops working at once. Registering under its name again takes this back. <code>{id}</code>
  </p>
);

/** Asks before an agent loses its key or is retired, where there is no script to ask. */
const ask = screen({
  method: "GET",
  path: "/agents/:id/end",
  role: "operator",
  run: async (visit) => {
    const agent = await visibleAgent(visit);
    const retires = visit.url.searchParams.get("act") === "retire";
    const data = await load(visit);
    return visit.page({
      title: retires ? "Retire an agent" : "End a key",
      place: "agents",
      children: (
        <>
          <PageHead
            title={retires ? `Retire ${shortId(agent.id)}?` : `End the key of ${shortId(agent.id)}?`}
            crumbs={[
              { text: "Agents", href: link("/agents", { project: visit.project }) },
              { text: <Name text={agent.name} />, href: agentLink(agent.id) },
            ]}
          />
          <Section title="What will happen" padded>
            {retires ? (
              <RetireWords id={agent.id} leases={data.leases.length} open={data.work.openIn + data.work.openOut} />
            ) : (
              <EndKeyWords id={agent.id} />
            )}
          </Section>
          <Row>
            <Act action={`/agents/${agent.id}/${retires ? "retire" : "end-key"}`} csrf={visit.csrf}>
              <Button kind="danger" type="submit">
                {retires ? "Retire" : "End the key"}
              </Button>
            </Act>
            <Button href={agentLink(agent.id, { project: visit.project })}>Keep it</Button>
          </Row>
        </>
      ),
    });
  },
});

type Deed = (visit: Visit, agent: AgentRow) => ReturnType<Parameters<typeof act>[2]>;
const onAgent = (name: string, deed: Deed): Screen =>
  screen({
    method: "POST",
    path: `/agents/:id/${name}`,
    role: "operator",
    run: async (visit) => {
      const agent = await visibleAgent(visit);
      return act(visit, agentLink(agent.id, { project: visit.project }), () => deed(visit, agent));
    },
  });

const ping: Deed = async (visit, agent) => {
  const { id, audit } = personOf(visit);
  const sender: messages.Party = { id: `operator:${id}`, project: agent.project, name: "operator", audit };
  const request = {
    target: agent.id,
    content: PING,
    delivery: "followUp" as const,
    hops: 0,
    maxHops: MAX_HOPS_DEFAULT,
    allowOffline: true,
    ttlMs: PING_TTL_MS,
  };
  const { message } = await visit.hub.engine.write(agent.project, (tx) => messages.sendAs(tx, sender, request, { ttlMs: PING_TTL_MS }));
  visit.hub.metrics.add("messages_sent");
  return { tone: "ok", text: `Pinged ${visible(agent.name)} as ${shortId(message.id)}.`, hint: "Its reply appears on its page." };
};
const endKey: Deed = async (visit, agent) => {
  const deadKeyHash = sha256(newSecret("kxa")); // nobody ever holds this key
  await visit.hub.engine.write(agent.project, (tx) => retirement.endKey(tx, personOf(visit), agent.id, deadKeyHash));
  visit.hub.presence.forget(agent.id);
  return { tone: "ok", text: `Ended the key of ${shortId(agent.id)}.`, hint: "It is back as soon as it registers again." };
};
const retire: Deed = async (visit, agent) => {
  const done = await retirement.retire(visit.hub, personOf(visit), agent, sha256(newSecret("kxa")));
  return { tone: "ok", text: `Retired ${shortId(agent.id)}.`, hint: `Leases freed: ${done.leases}. Messages cancelled: ${done.messages}.` };
};

/** Acts on agents, for the list of screens. */
export const agentActs: readonly Screen[] = [ask, onAgent("ping", ping), onAgent("end-key", endKey), onAgent("retire", retire)];
