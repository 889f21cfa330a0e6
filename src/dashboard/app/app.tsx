import { useEffect, useState } from "react";
import { matchRoute, useRouter } from "wouter";

import { areasOf } from "./areas.ts";
import { SignIn } from "./pages/sign-in/sign-in.tsx";
import type { Session } from "./session/identity.ts";
import {
  HOME,
  consumeInvitation,
  consumeRecipientCode,
  consumeResetLink,
} from "./session/links.ts";
import { useSessionState } from "./session/session.tsx";
import { page } from "./shell/page.tsx";

const AlertRecipient = page(() => import("./pages/sign-in/alert-recipient.tsx"));
const Welcome = page(() => import("./pages/sign-in/welcome.tsx"));
const SignedIn = page(() => import("./signed-in.tsx"));

/**
 * Renders the sign-in page at every path until a user signs in. The address does not change, so that the
 * requested page opens after the sign-in.
 */
export function App() {
  const { session } = useSessionState();
  usePagePreload(session);
  const [invitation, setInvitation] = useState(consumeInvitation);
  const [recipientCode, setRecipientCode] = useState(consumeRecipientCode);
  const [reset] = useState(consumeResetLink);
  const [before] = useState(session?.token);
  if (recipientCode !== undefined)
    return <AlertRecipient code={recipientCode} onDone={() => setRecipientCode(undefined)} />;
  if (invitation !== undefined)
    return <Welcome invitation={invitation} onDone={() => setInvitation(undefined)} />;
  // A link that resets a password is also for a browser that is still signed in.
  if (session === undefined || (reset !== undefined && session.token === before))
    return <SignIn reset={reset} onMethod={SignedIn.preload} />;
  return <SignedIn />;
}

/**
 * Preloads the script chunk of the current page while the browser loads the chunk of the page frame
 * (`signed-in.tsx`), because otherwise the page chunk would load only after the frame.
 */
function usePagePreload(session: Session | undefined): void {
  const { parser } = useRouter();
  useEffect(() => {
    if (session === undefined) return;
    const path = location.pathname.slice(HOME.length).replace(/\/$/, "");
    const pages = areasOf(session).flatMap((one) => Object.entries(one.pages));
    const found = pages.find(([pattern]) => path === "" || matchRoute(parser, pattern, path)[0]);
    found?.[1].preload();
  }, [session, parser]);
}
