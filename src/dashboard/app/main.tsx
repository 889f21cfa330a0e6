import { QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app.tsx";
import { followNewLinks, takePortalLink } from "./session/links.ts";
import { SessionProvider } from "./session/session.tsx";
import { queryClient } from "./session/query-client.ts";
import { BrandTheme, styleNonce } from "./shell/theme.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no #root.");
// The scroll lock behind a dialog adds a style element, which the content security policy allows by nonce
// only.
setNonce(styleNonce());
const portal = takePortalLink();
const shown = createRoot(root);
if (portal === undefined)
  shown.render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <SessionProvider>
          <BrandTheme>
            <App />
          </BrandTheme>
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
else {
  followNewLinks();
  // The portal is a separate chunk, so that the sign-in does not load it.
  void import("./portal.tsx").then(({ Portal }) =>
    shown.render(
      <StrictMode>
        <Portal link={portal} />
      </StrictMode>,
    ),
  );
}
