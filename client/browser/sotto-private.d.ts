/** The law of a noise. */
export type Law = 'laplace' | 'gaussian';
/**
 * Draws from a law, exactly: Laplace of scale num/den, P(x) ∝ exp(−|x|·den/num), or Gaussian with
 * num/den for a variance, P(x) ∝ exp(−x²·den/(2·num)). fraction is "num/den", both from 1 to 2⁶⁴.
 */
export declare const noise: (law: Law, fraction: string) => bigint;
/**
 * What a page believes of an experiment, whatever its service says. helper is the helper's key as
 * the declaration has it (helper.key), and task is what the helper prints beside the experiment's name:
 * one key serves all tasks of a helper, and the noise is that of the task. Of local, law and noise are
 * what each visitor adds before anything leaves the browser.
 */
export type Pin = {
    trust: 'two-server';
    helper: string;
    task: string;
} | {
    trust: 'local';
    law: Law;
    noise: string;
};
/** How a decision is to be reported, as its answer says. */
export interface Terms {
    trust: string;
    /** The decision, to whoever counts its report. */
    ticket: string;
    /** In how many milliseconds the report is sent, whatever has happened by then. */
    after_ms: number;
    range: [number, number];
    /** What is reported if nothing has come. */
    default: number;
    law?: Law;
    noise?: string;
    task?: string;
    time?: number;
    grid?: number;
}
/** Where what is to be sent is kept until its time: the part of localStorage that is needed. */
export interface Store {
    readonly length: number;
    key(index: number): string | null;
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
}
export interface Options {
    /** The address of the leader. */
    leader: string | URL;
    /** A key of the scope browser. */
    key: string;
    /** By the experiment's name. */
    pins: Record<string, Pin>;
    /** localStorage if not given. */
    store?: Store;
}
export interface Ask {
    /** A unit that the page's server has signed; else the visitor is who the leader's cookie names. */
    unitToken?: string;
    signal?: AbortSignal;
}
export interface Decision {
    experiment: string;
    decision: string | null;
    arm: string;
    value?: unknown;
    propensity: number;
    expires_at: string | null;
    reason: string;
}
/**
 * Sends what is due of what pages of this site have kept, and waits for the rest. Every page of the
 * site that has this module should call it, or connect, which does.
 */
export declare function resume(store?: Store): void;
/** A store that lasts as long as the page. */
export declare function newMemory(): Store;
/** A page's connection to a leader. */
export declare class Client {
    #private;
    constructor(options: Options);
    /**
     * The arm of a visitor. From here on one report is sent at its time, whatever happens. It rejects
     * if there is no arm to be had, or if the leader would have it reported in another way than the
     * page has pinned: show the usual arm then; nothing is reported.
     */
    decide(experiment: string, { unitToken, signal }?: Ask): Promise<Decision>;
    /**
     * Keeps what came of a decision, a finite number, until the report's time; the last one counts.
     * Nothing is sent by it. decision is what decide gave, or its decision alone, on whatever page of
     * the site. False says that it does not count: the report has been sent, or there is none.
     */
    outcome(decision: Decision | string, value?: number): boolean;
}
/** Connects a page to a leader, and sends what is due of what other pages have kept. */
export declare const connect: (options: Options) => Client;
