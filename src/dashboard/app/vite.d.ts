// Types of imports that Vite resolves, such as style sheets and `?raw` texts.
/// <reference types="vite/client" />
