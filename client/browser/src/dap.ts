// A report of draft-ietf-ppm-dap-16, as package secagg/dap has it.
import { ascii, big, concat, sized, unbase64url, type Bytes } from './bytes.ts';
import { seal, type Config } from './hpke.ts';
import { context, shard } from './prio3.ts';

const version = 'dap-16';

/** The type of the public extension that carries the decision's ticket. */
const ticketExtension = 0xff00;

/** What a report is about: its task, its time, and its decision's ticket. */
export interface About { task: string; time: number; grid: number; ticket: string }

/** The report of a value from 0 to grid, a power of two. */
export async function report(of: About, leader: Config, helper: Config, value: number): Promise<Bytes> {
  const task = unbase64url(of.task, 'task'), ticket = unbase64url(of.ticket, 'ticket');
  const random = crypto.getRandomValues(new Uint8Array(16 + 4 * 32));
  const seed = (i: number) => random.slice(16 + 32 * i, 48 + 32 * i);
  const metadata = concat(random.slice(0, 16), big(of.time, 8),
    sized(concat(big(ticketExtension, 2), sized(ticket, 2)), 2));
  const aad = concat(task, metadata, big(0, 4)); // the public share is empty
  const to = async (server: Config, role: number, share: Bytes, ephemeral: Bytes) => {
    const [key, text] = await seal(server, concat(ascii(`${version} input share`), Uint8Array.of(1, role)),
      aad, concat(big(0, 2), sized(share, 4)), ephemeral);
    return concat(Uint8Array.of(server.id), sized(key, 2), sized(text, 4));
  };
  const forLeader = shard(of.grid, value, context(version, task), seed(0), seed(1));
  const sealed = await Promise.all([to(leader, 2, forLeader, seed(2)), to(helper, 3, seed(0), seed(3))]);
  return concat(metadata, big(0, 4), ...sealed);
}
