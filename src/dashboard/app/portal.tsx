import { Button, Paper, Stack, Text, Title } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import {
  useRef,
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useState,
} from "react";
import { Redirect, Route, Router, Switch } from "wouter";

import { apiWith, BASE_URL } from "./api/connect.ts";
import { useSeesSecrets } from "./pages/webhooks/data/data.ts";
import { READING_PAGES } from "./pages/webhooks/pages.ts";
import { type Portal as OpenedPortal, readIdentity, type Session } from "./session/identity.ts";
import { type PortalLink, NO_CALLBACK } from "./session/links.ts";
import { queryClient } from "./session/query-client.ts";
import { brandOf } from "./session/shown-brand.ts";
import { SessionContext, type SessionState } from "./session/session.tsx";
import { Acting } from "./shell/acting.tsx";
import { BrandLogo } from "./shell/brand.tsx";
import { page, PageBoundary } from "./shell/page.tsx";
import css from "./shell/shell.module.css";
import { BrandTheme } from "./shell/theme.tsx";
import { usePageTitle } from "./ui/brand-name.ts";
import { ErrorNotice, Loading } from "./ui/states.tsx";

const Create = page(() => import("./pages/webhooks/create.tsx"));

/**
 * Renders the webhook pages of a portal link without the navigation menu. They are shown in a separate window, or in
 * a frame of the partner's website.
 */
export function Portal({ link }: { readonly link: PortalLink }) {
  return (
    <QueryClientProvider client={queryClient}>
      <PortalSession link={link}>
        {(state) => (
          <BrandTheme scheme={link.theme}>
            <Notifications position="top-center" />
            <PortalContent>
              <Router base={link.base}>
                <PortalBody state={state} />
              </Router>
            </PortalContent>
          </BrandTheme>
        )}
      </PortalSession>
    </QueryClientProvider>
  );
}

function PortalContent({ children }: { readonly children: ReactNode }) {
  const content = useRef<HTMLElement>(null);
  useReportedHeight(content);
  return (
    <main ref={content} className={`${css.page} ${css.portal}`} data-page>
      {children}
    </main>
  );
}

function PortalBody({ state }: { readonly state: PortalState }) {
  const { session, last, ended, error, retry, stop } = state;
  if (ended !== undefined) return <SessionEnded ended={ended} last={last} />;
  if (error !== undefined) return <ErrorNotice error={error} retry={retry} />;
  if (session?.portal === undefined) return <Loading />;
  return (
    <PageBoundary>
      {session.portal.isOfOperator && (
        <Acting
          as={`the owner of ${session.company.name}`}
          limits="Secrets, new webhooks and alerts stay with the owner."
        >
          <Button size="xs" onClick={stop}>
            Stop acting
          </Button>
        </Acting>
      )}
      <PortalPages portal={session.portal} />
    </PageBoundary>
  );
}

function PortalPages({ portal: { pages } }: { readonly portal: OpenedPortal }) {
  const mayCreate = useSeesSecrets() && pages.includes("webhooks");
  return (
    <Switch>
      {mayCreate && <Route path="/webhooks/new" component={Create} />}
      {Object.entries(READING_PAGES).map(([path, View]) => (
        <Route key={path} path={path} component={View} />
      ))}
      <Route>
        <Redirect to={`/${pages.length === 1 ? pages[0] : "webhooks"}`} replace />
      </Route>
    </Switch>
  );
}

/** Title and text of the page without a session, by the reason. */
const END_REASON_WORDS = {
  used: [
    "This link no longer works",
    "It was already used or has expired. Each link works once and for a short time.",
  ],
  missing: ["This session has ended", "This page was reloaded, and a link works only once."],
  expired: ["This session has ended", "It has expired or was closed."],
  stopped: ["You no longer act as the owner", "The session is closed."],
} as const;

interface SessionEndedProps extends Pick<PortalState, "last"> {
  readonly ended: PortalEndReason;
}

/** Says why a portal shows no pages, and how to go on. */
function SessionEnded({ ended, last }: SessionEndedProps) {
  const hasHost = useHasHost();
  const [title, reason] = END_REASON_WORDS[ended];
  usePageTitle(title);
  const company = last?.portal?.isOfOperator === true ? last.company : undefined;
  const logoUrl = last?.theme.logo_url ?? null;
  return (
    <Paper withBorder p="xl" maw={480} mx="auto" my="xl">
      <Stack align="center" ta="center">
        {logoUrl !== null && <BrandLogo logoUrl={logoUrl} />}
        <Title order={1} size="h3">
          {title}
        </Title>
        <Text c="dimmed">
          {reason} {company === undefined && nextStep(hasHost)}
        </Text>
        {company !== undefined && (
          <Button component="a" href={`/dashboard/companies/${company.id}`}>
            Back to {company.name}
          </Button>
        )}
      </Stack>
    </Paper>
  );
}

const nextStep = (hasHost: boolean): string =>
  hasHost
    ? "To start another session, reload the page."
    : "To start another session, request a new link where you got this one.";

/*
 * Messages from the portal to the page that frames it (guide "Embedding"). They report only that the portal has
 * opened, its height in px, and that the session has ended. They are sent only to origins that may frame the
 * portal.
 */

type HostMessage =
  | { readonly type: "opened" }
  | { readonly type: "height"; readonly height: number }
  | { readonly type: "ended" };

const MESSAGE_SOURCE = "reviewrelay-portal";
/** Minimum height in px that is reported for the frame, because a dialog needs this height even over a short page. */
const MIN_HEIGHT = 400;
/**
 * Maximum height in px that is reported for the frame; taller content scrolls inside the frame. Lists render only the
 * rows in view. Without a maximum, all rows would be in view.
 */
const MAX_HEIGHT = 1_600;

/**
 * Returns the origins that may frame the portal. The server writes them into a `meta` element of the document, and
 * into the `frame-ancestors` of the Content-Security-Policy header.
 */
function listedOrigins(): readonly string[] {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="framed-by"]');
  return (meta?.content ?? "").split(" ").filter((one) => one !== "");
}

/**
 * Returns the origins that messages to the host page are sent to. If the browser supports `ancestorOrigins`, this is
 * only the origin of the host page. Otherwise all allowed origins are returned, and the browser drops the messages to
 * origins other than that of the host page.
 */
function hostOrigins(): readonly string[] {
  const listed = listedOrigins();
  const around = location.ancestorOrigins?.[0];
  return around === undefined ? listed : listed.filter((one) => one === around);
}

const isFramed = () => window.parent !== window;

function notifyHost(message: HostMessage): void {
  if (!isFramed()) return;
  for (const origin of hostOrigins())
    window.parent.postMessage({ source: MESSAGE_SOURCE, ...message }, origin);
}

/** Reports the height of the content to the host page whenever the height changes. */
function useReportedHeight(content: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = content;
    if (current === null || !isFramed()) return undefined;
    let last = 0;
    const observer = new ResizeObserver(() => {
      const full = Math.ceil(current.getBoundingClientRect().height);
      const height = Math.min(Math.max(full, MIN_HEIGHT), MAX_HEIGHT);
      if (height === last) return;
      last = height;
      notifyHost({ type: "height", height });
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [content]);
}

/**
 * Returns whether the portal is in a frame. If it is, the host page can open the portal again after the session has
 * ended.
 */
function useHasHost(): boolean {
  return useState(isFramed)[0];
}

/**
 * Reason why a portal shows no pages. `used`: the server rejected the code as used, expired or unknown.
 * `missing`: the link contained no code, for example after a reload. `expired`: the session ended. `stopped`: the
 * operator ended it.
 */
type PortalEndReason = keyof typeof END_REASON_WORDS;

interface PortalState {
  readonly session: Session | undefined;
  /** The session, also after its end. */
  readonly last: Session | undefined;
  readonly ended: PortalEndReason | undefined;
  /**
   * Error of the request that redeems the code, such as a network failure. The code may still be valid, so
   * `retry` sends the request again.
   */
  readonly error: unknown;
  readonly retry: () => void;
  /** Ends the session at the server, for an operator who acts as the owner. */
  readonly stop: () => void;
}

interface PortalSessionProps {
  readonly link: PortalLink;
  readonly children: (state: PortalState) => ReactNode;
}

/**
 * Redeems the one-time code of a portal link for a session. Only the memory of this page contains the session,
 * so a reload ends it.
 */
function PortalSession({ link: { base, code }, children }: PortalSessionProps) {
  const [last, setLast] = useState<Session>();
  const [ended, setEnded] = useState<PortalEndReason | undefined>(
    code === undefined ? "missing" : undefined,
  );
  const session = ended === undefined ? last : undefined;
  const [error, setError] = useState<unknown>();
  const open = useCallback(() => {
    if (code === undefined) return;
    setError(undefined);
    openSession(base, code).then(setLast, (failed: unknown) => {
      if (failed instanceof CodeRejected) setEnded("used");
      else setError(failed);
    });
  }, [base, code]);
  const isBegun = useRef(false);
  useEffect(() => {
    if (isBegun.current) return;
    isBegun.current = true;
    open();
  }, [open]);
  useEffect(() => {
    if (session !== undefined) notifyHost({ type: "opened" });
  }, [session]);
  useEffect(() => {
    if (ended !== undefined) notifyHost({ type: "ended" });
  }, [ended]);
  const end = useCallback((reason: PortalEndReason = "expired") => {
    queryClient.clear();
    setEnded(reason);
  }, []);
  const state = useSessionState({ session, last }, end);
  const stop = () => {
    // The token expires by itself if the server cannot be reached.
    void state.api.sso["revoking-token"].get().catch(() => undefined);
    end("stopped");
  };
  return (
    <SessionContext value={state}>
      {children({ session, last, ended, error, retry: open, stop })}
    </SessionContext>
  );
}

/** Thrown when the server rejects the code of a portal link. A retry would be rejected, too. */
class CodeRejected extends Error {}

async function openSession(base: string, code: string): Promise<Session> {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ code });
  const answer = await fetch(`${BASE_URL}${base}/session`, { method: "POST", headers, body });
  if (answer.status === 400 || answer.status === 422) throw new CodeRejected();
  if (!answer.ok) throw new Error(`The exchange of the code failed with status ${answer.status}.`);
  const { token, pages, scope }: OpenedSession = await answer.json();
  const identity = await readIdentity(apiWith(token));
  const isReadOnly = !scope.split(" ").includes("webhooks:write");
  const isOfOperator = identity.impersonation !== undefined;
  return { ...identity, token, portal: { pages, isReadOnly, isOfOperator } };
}

/** Fields of the server's response (src/portal/routes.ts) that a portal session needs. */
interface OpenedSession {
  readonly token: string;
  readonly pages: readonly string[];
  readonly scope: string;
}

const doNothing = () => {};

/**
 * Builds the session state of a portal. Its sign-in, sign-out and impersonation do nothing, because a portal
 * session begins with a link and ends when its token expires.
 */
function useSessionState(
  { session, last }: Pick<PortalState, "session" | "last">,
  onEnd: () => void,
): SessionState {
  const token = session?.token;
  const api = useMemo(
    () => apiWith(token, { onUnauthorized: () => token !== undefined && onEnd() }),
    [token, onEnd],
  );
  return {
    session,
    // The page of an ended session keeps its brand.
    ...(last !== undefined && { ownBrand: brandOf(last) }),
    isRemembered: false,
    ended: undefined,
    ssoCallback: NO_CALLBACK,
    api,
    waiting: undefined,
    asked: undefined,
    signIn: doNothing,
    signInWith: async () => true,
    stopWaiting: doNothing,
    signInAgain: doNothing,
    signOut: doNothing,
    actAs: doNothing,
    comeBack: doNothing,
  };
}
