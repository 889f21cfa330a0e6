import { useState } from "react";

import { SignIn } from "./pages/sign-in/sign-in.tsx";
import { Welcome } from "./pages/sign-in/welcome.tsx";
import { takeInvitation } from "./session/invitation.ts";
import { useSessionState } from "./session/session.tsx";
import { page } from "./chunks/page.tsx";

const SignedIn = page(() => import("./signed-in.tsx"));

/** Whoever is not signed in sees the sign-in at every path, and goes on where they wanted to go. */
export function App() {
  const { session } = useSessionState();
  const [invitation, setInvitation] = useState(takeInvitation);
  if (invitation !== undefined)
    return <Welcome invitation={invitation} onDone={() => setInvitation(undefined)} />;
  return session === undefined ? <SignIn /> : <SignedIn />;
}
