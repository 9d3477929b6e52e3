/* Regard look. Sources: web/. */
"use strict";(()=>{function d(e,t={},...n){let o=document.createElement(e);return Jt(o,t),jo(o,n),o}function Jt(e,t){for(let[n,o]of Object.entries(t))typeof o=="function"?e.addEventListener(n.slice(2),o):o==null||o===!1?e.removeAttribute(n):e.setAttribute(n,o===!0?"":String(o))}function X(e,...t){let n=document.activeElement,o=e.contains(n);e.replaceChildren(),jo(e,t),o&&e.contains(n)&&n.focus({preventScroll:!0})}function jo(e,t){for(let n of t)n==null||n===!1||e.append(typeof n=="string"?document.createTextNode(n):n)}function Me(e,t,n){let o=d("input",{type:"checkbox",onchange:()=>n(o.checked)});return o.checked=t,d("label",{class:"control"},o,e)}function Te(e,t,n,o){let r=t.map(([s,i])=>d("button",{type:"button","aria-pressed":String(s===n),onclick:()=>o(s)},i));return d("div",{class:"choice",role:"group","aria-label":e},...r)}function Se(e,t,n,o){let r=d("select",{onchange:()=>o(r.value)});for(let[s,i]of t)r.append(d("option",{value:s},i));return r.value=n,d("label",{class:"control"},e,r)}function qo(e,t,n){let o=e.session,r={text:e.text,model:o.model,against:e.against&&e.against.text!==e.text?e.against.text:"",against_model:o.against_model},s=d("p",{class:"small",role:"status"}),i=d("p",{class:"problem",role:"alert"}),a=o.models.length>1?"The same text, or another one":"Another text to compare with",l=f("Text","text","model",""),c=f("Compare with","against","against_model",a);c.hidden=!e.against;let m=d("button",{type:"button",onclick:g});b();let u=d("button",{type:"submit",class:"main"},"Look inside"),h=d("form",{class:"box","aria-label":"Enter another text",onsubmit:w},l,c,d("div",{class:"controls"},u,m,s),i),p=!1;function f(x,L,$,M){let T=d("textarea",{rows:1,"aria-label":x,placeholder:M,dir:"auto",spellcheck:"false",oninput:()=>{r[L]=T.value,A()},onkeydown:S=>{S.key!=="Enter"||S.shiftKey||S.isComposing||(S.preventDefault(),h.requestSubmit())}});T.value=r[L];let A=()=>T.rows=Math.min(6,Math.max(T.value.split(`
`).length,T.value.length/90));A();let k=o.models.map((S,O)=>[String(O),S]),v=S=>r[$]=Number(S),E=k.length>1?Se("Model",k,String(r[$]),v):null;return d("div",{class:"row"},T,E)}function g(){c.hidden=!c.hidden,b(),c.hidden||c.querySelector("textarea").focus()}function b(){m.textContent=c.hidden?"Compare with …":"Without comparison",m.setAttribute("aria-expanded",String(!c.hidden))}async function w(x){if(x.preventDefault(),p)return;p=!0,u.setAttribute("aria-disabled","true"),X(i);let L=Date.now(),$=()=>{let T=Math.floor((Date.now()-L)/1e3);s.textContent=T>0?`Looking inside … ${T} s`:"Looking inside …"};$();let M=setInterval($,1e3);try{n(await t.look(c.hidden?{...r,against:"",against_model:r.model}:r))}catch(T){i.textContent=T.message}finally{clearInterval(M),s.textContent="",u.removeAttribute("aria-disabled"),p=!1}}return h}function In(e){let t=e.attention.find(n=>n.name==="decoder.cross");for(let n of e.hypotheses)n.link_heads??=t?[t.default_head]:[];for(let n of e.attention)n.default_head=Ke(e,[n])?.place??n.default_head;e.against&&In(e.against)}function Ke(e,t){let n=t.flatMap(r=>(e.ablation?.delta[r.name]??[]).flatMap((s,i)=>s.flatMap((a,l)=>a===null?[]:[{group:r,place:[i,l],delta:a}])));if(n.length===0)return null;let o=n.reduce((r,s)=>s.delta<r.delta?s:r);return o.delta<0?o:n.reduce((r,s)=>s.delta>r.delta?s:r)}var Ie=Float32Array.from({length:256},(e,t)=>(t/255)**2);function ft(e){return Math.round(Math.sqrt(Math.min(1,Math.max(0,e)))*255)}async function Be(e){let t=atob(e.data),n=new Uint8Array(t.length);for(let a=0;a<t.length;a++)n[a]=t.charCodeAt(a);let o=new Blob([n]).stream().pipeThrough(new DecompressionStream("deflate")),r=await new Response(o).arrayBuffer(),s={u8:()=>new Uint8Array(r),i8:()=>new Int8Array(r),i32:()=>new Int32Array(r),f32:()=>new Float32Array(r)}[e.dtype](),i=e.shape.reduce((a,l)=>a*l,1);if(s.length!==i)throw new Error(`A blob has ${s.length} numbers, its shape says ${i}.`);return{shape:e.shape,codes:s,scale:e.scale}}var ke=class{constructor(t,n,o=1/0){this.load=t;this.arrived=n;this.limit=o}load;arrived;limit;values=new Map;read(t){let n=this.entry(t);return n instanceof Error?void 0:n}has(t){return this.values.has(t)}problem(t){let n=this.values.get(t);return n instanceof Error?n.message:null}entry(t){if(this.values.has(t)){let n=this.values.get(t);return this.values.delete(t),this.values.set(t,n),n}this.values.set(t,void 0),this.values.size>this.limit&&this.values.delete(this.values.keys().next().value),this.load(t).catch(n=>n instanceof Error?n:new Error(String(n))).then(n=>{this.values.set(t,n),this.arrived()})}};function Vo(e){return e.format.startsWith("regard-film/")}function en(e,t){return e.filter(n=>n.step<=t).length-1}function tn(e,t){return e===null||t===0?null:Math.exp(e/t)}function Ko(e,t,n,o,r){let s=h=>h.reduce((p,f)=>p*f,1),i=t.probes.slice(0,n).reduce((h,p)=>h+s(p.shape),0),[a,l,c,m]=t.probes[n].shape,u=o-(e.attention.layers-a);return u<0||r>=l||c===0?null:{start:i+(u*l+r)*c*m,rows:c,columns:m}}function Nn(e,t,n){let[o,r]={"decoder.cross":[t.probes[n].tokens,e.probes[n].tokens],"decoder.self":[t.probes[n].tokens,t.probes[n].tokens],"encoder.self":[e.probes[n].tokens,e.probes[n].tokens],"":[[],[]]}[e.attention.name],s=([i,a])=>({id:0,text:i,word:a,role:a===null?"special":"text"});return{rows:o.map(s),columns:r.map(s)}}var Bn=new WeakMap;function Xo(e){return Bn.has(e.maps)||Bn.set(e.maps,Be(e.maps)),Bn.get(e.maps)}var Qo=[137,80,78,71,13,10,26,10],Ii=Uint32Array.from({length:256},(e,t)=>{for(let n=0;n<8;n++)t=t&1?3988292384^t>>>1:t>>>1;return t});function Bi(e){let t=4294967295;for(let n of e)t=Ii[(t^n)&255]^t>>>8;return~t>>>0}function Yo(e){let t=e.map(({png:a})=>Ni(a)),n=t[0][0].data,o=n.subarray(0,8),r=t[0].findIndex(({type:a})=>a==="IDAT"),s=[t[0][0],{type:"acTL",data:bt(e.length,0)},...t[0].slice(1,r)],i=0;return t.forEach((a,l)=>{if(a[0].data.join()!==n.join())throw new Error(`Frame ${l+1} has another size or color type.`);let{delay:c,isOver:m}=e[l],u=[bt(i++),o,bt(0,0,Math.round(c)<<16|1e3),[0,Number(m)]];s.push({type:"fcTL",data:Rt(u)});let h=a.filter(({type:p})=>p==="IDAT").map(p=>p.data);l===0?s.push({type:"IDAT",data:Rt(h)}):s.push({type:"fdAT",data:Rt([bt(i++),...h])})}),s.push({type:"IEND",data:new Uint8Array}),Rt([Qo,...s.flatMap(Wi)])}function Ni(e){let t=new DataView(e.buffer,e.byteOffset,e.byteLength),n=[];for(let o=Qo.length;o<e.length;){let r=o+8,s=r+t.getUint32(o);n.push({type:String.fromCharCode(...e.subarray(o+4,r)),data:e.subarray(r,s)}),o=s+4}return n}function Wi({type:e,data:t}){let n=Rt([Array.from(e,o=>o.charCodeAt(0)),t]);return[bt(t.length),n,bt(Bi(n))]}function bt(...e){let t=new DataView(new ArrayBuffer(4*e.length));return e.forEach((n,o)=>t.setUint32(4*o,n)),new Uint8Array(t.buffer)}function Rt(e){let t=new Uint8Array(e.reduce((o,r)=>o+r.length,0)),n=0;for(let o of e)t.set(o,n),n+=o.length;return t}function Dt(e,t){let n=d("a",{href:URL.createObjectURL(t),download:e});n.click(),setTimeout(()=>URL.revokeObjectURL(n.href),1e3)}var Zo={width:872,height:490},Pt=1,Ne=()=>Pt;function Xe(e,t=0){if(Pt===1)return Math.max(t,640,window.innerHeight-300);let n=e.getBoundingClientRect().top+window.scrollY;return Math.max(120,(window.innerHeight-n)/Pt-12)}function Jo(e,t){let n=a=>{e.set({present:a}),document.fullscreenEnabled&&(a?document.documentElement.requestFullscreen().catch(()=>{}):document.fullscreenElement&&document.exitFullscreen().catch(()=>{}))},o=()=>{let{present:a}=e.state,{innerWidth:l,innerHeight:c}=window;Pt=a?Math.max(1,Math.min(l/Zo.width,c/Zo.height)):1,document.documentElement.classList.toggle("present",a),document.documentElement.style.setProperty("--zoom",String(Pt));let m=a?"Leave the presentation (Escape)":"Present (P)";r.textContent=a?"×":"Present",r.title=m,r.setAttribute("aria-label",m)},r=d("button",{type:"button",class:"presenter",onclick:()=>n(!e.state.present)});e.subscribe(a=>a.has("present")&&o());let s=()=>{e.state.present&&(o(),e.notify())};window.addEventListener("resize",s,{signal:t});let i=()=>document.fullscreenElement??e.set({present:!1});return document.addEventListener("fullscreenchange",i,{signal:t}),window.addEventListener("keydown",a=>{a.target.matches?.("input:not([type=checkbox],[type=range]), textarea, select")||a.ctrlKey||a.metaKey||a.altKey||(a.key.toLowerCase()==="p"?n(!e.state.present):a.key==="Escape"&&e.state.present&&!e.state.locked&&n(!1))},{capture:!0,signal:t}),o(),r}var ge=class{constructor(t,n,o,r,s=(window.devicePixelRatio||1)*Ne()){this.font=r;let[i,a]=[Math.round(n*s),Math.round(o*s)];(t.width!==i||t.height!==a)&&(t.width=i,t.height=a,t.style.width=`${n}px`,t.style.height=`${o}px`),this.context=t.getContext("2d"),this.context.setTransform(s,0,0,s,0,0),this.context.clearRect(0,0,n,o)}font;context;rect(t,n,o,r,s){let i=new Path2D;s.radius?i.roundRect(t,n,o,r,s.radius):i.rect(t,n,o,r),this.draw(i,s)}path(t,n){this.draw(new Path2D(t),n)}text(t,n,o,r){let{context:s}=this;s.save(),s.translate(t,n),r.angle&&s.rotate(r.angle*Math.PI/180),s.font=`${r.weight??400} ${r.size??13}px ${this.font}`,s.fillStyle=r.fill,s.textAlign={start:"left",middle:"center",end:"right"}[r.anchor??"start"],s.textBaseline="middle",s.fillText(o,0,0),s.restore()}pixels(t,n,o,r,s){this.context.imageSmoothingEnabled=!1,this.context.drawImage(tr(s),t,n,o,r)}image(t,n,o,r,s){this.context.drawImage(t,n,o,r,s)}draw(t,n){let{context:o}=this;o.globalAlpha=n.opacity??1,n.fill&&(o.fillStyle=n.fill,o.fill(t)),n.stroke&&(o.strokeStyle=n.stroke,o.lineWidth=n.width??1,o.setLineDash(n.dash?n.dash.split(" ").map(Number):[]),o.stroke(t)),o.globalAlpha=1}},Wn="http://www.w3.org/2000/svg",ot=class{element=document.createElementNS(Wn,"svg");constructor(t,n,o,r){Jt(this.element,{xmlns:Wn,width:t,height:n,viewBox:`0 0 ${t} ${n}`,"font-family":o}),r&&this.rect(0,0,t,n,{fill:r})}rect(t,n,o,r,s){this.add("rect",{x:t,y:n,width:o,height:r,rx:s.radius,...er(s)})}path(t,n){this.add("path",{d:t,...er(n)})}text(t,n,o,r){let s=this.add("text",{x:t,y:n,fill:r.fill,"font-size":r.size??13,"font-weight":r.weight??400,"text-anchor":r.anchor??"start","dominant-baseline":"central",transform:r.angle?`rotate(${r.angle} ${t} ${n})`:null});s.textContent=o}pixels(t,n,o,r,s){this.add("image",{x:t,y:n,width:o,height:r,href:tr(s).toDataURL("image/png"),preserveAspectRatio:"none",style:"image-rendering: pixelated"})}add(t,n){let o=document.createElementNS(Wn,t);return Jt(o,n),this.element.append(o),o}};function er(e){return{fill:e.fill??"none",stroke:e.stroke??null,"stroke-width":e.stroke?e.width??1:null,"stroke-dasharray":e.dash??null,opacity:e.opacity??null}}function tr(e){let t=document.createElement("canvas");t.width=e.width,t.height=e.height;let n=new Uint8ClampedArray(e.data.buffer,e.data.byteOffset,e.data.byteLength);return t.getContext("2d").putImageData(new ImageData(n,e.width,e.height),0,0),t}var Ui={light:[[0,[255,255,255]],[90,[198,219,239]],[150,[107,174,214]],[205,[33,113,181]],[255,[8,38,92]]],dark:[[0,[20,22,27]],[90,[24,58,98]],[150,[33,105,172]],[205,[98,170,226]],[255,[226,241,255]]]},Un=null;function ae(){let e=getComputedStyle(document.documentElement),t=s=>e.getPropertyValue(s).trim(),n=t("--scheme");if(Un?.key===n)return Un.theme;let o=Gi(Ui[n==="dark"?"dark":"light"]),r={page:t("--page"),ink:t("--ink"),muted:t("--muted"),rule:t("--rule"),accent:t("--accent"),hue:t("--hue"),minus:t("--minus"),tint:t("--tint"),font:t("--font"),ramp:o.map(zi),pixels:Uint32Array.from(o,([s,i,a])=>(4278190080|a<<16|i<<8|s)>>>0)};return Un={key:n,theme:r},r}function Gi(e){let t=[],n=new Set;for(let o=0;o<256;o++){let r=e.findIndex(([u])=>u>=o),[s,i]=e[Math.max(0,r-1)],[a,l]=e[r],c=a===s?1:(o-s)/(a-s),m=i.map((u,h)=>Math.round(u+c*(l[h]-u)));for(;n.has(m.join());)m[2]+=m[2]<128?1:-1;n.add(m.join()),t.push(m)}return t}function zi([e,t,n]){return"#"+[e,t,n].map(o=>o.toString(16).padStart(2,"0")).join("")}function Qe(e,t,n){let o=(a,l)=>parseInt(a.slice(l,l+2),16),[r,s,i]=[1,3,5].map(a=>Math.round(o(e,a)+n*(o(t,a)-o(e,a))));return(4278190080|i<<16|s<<8|r)>>>0}function nn(e){let[t,n,o]=[1,3,5].map(r=>{let s=parseInt(e.slice(r,r+2),16)/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*t+.7152*n+.0722*o>.18?"#000000":"#ffffff"}var Gn=null;function be(e,t,n){return Gn??=document.createElement("canvas").getContext("2d"),Gn.font=`${t}px ${n}`,Gn.measureText(e).width}function me(e,t,n,o){if(be(e,t,n)<=o)return e;let r=Array.from(e);for(;r.length>1&&be(r.join("")+"…",t,n)>o;)r.pop();return r.join("")+"…"}var ji=2,Ye=24,qi=560,Vi=16384,Ki="Made with Regard";function zn(){let e=s=>document.querySelector(s)?.textContent?.trim()??"",[t,n,o]=["header .input","header h1 bdi","header .sure"].map(e),r=`${t&&"→ "}${n}${o&&` (${o})`}`;return{title:e("#panel h2"),lines:[t,r].filter(Boolean)}}function jn(e,t,n,o=document.createElement("canvas"),r=ji){let s=Math.max(e.width,qi),i=[...gt(t.title,18,700,s,2,n),...t.lines.flatMap(f=>gt(f,14,400,s,3,n))],a=i.reduce((f,g)=>f+g.size*1.45,0)+12,l=Math.ceil(s+2*Ye),c=Math.ceil(a+e.height+22+2*Ye),m=Math.min(r,Vi/Math.max(l,c)),u=new ge(o,l,c,n.font,m);u.rect(0,0,l,c,{fill:n.page});let h=Ye;for(let{text:f,size:g,weight:b}of i)u.text(Ye,h+g*.7,f,{fill:n.ink,size:g,weight:b}),h+=g*1.45;let p=document.createElement("canvas");return e.draw(new ge(p,e.width,e.height,n.font,m),n),u.image(p,Ye,Ye+a,e.width,e.height),u.text(Ye,c-Ye-2,Ki,{fill:n.muted,size:12}),o}function nr(e,t){jn(t,zn(),ae()).toBlob(n=>n&&Dt(`${e}.png`,n),"image/png")}function or(e,{width:t,height:n,draw:o}){let r=ae(),s=new ot(t,n,r.font,r.page);o(s,r);let i=new XMLSerializer().serializeToString(s.element);Dt(`${e}.svg`,new Blob([i],{type:"image/svg+xml"}))}function gt(e,t,n,o,r,s){let i=s.font,a=n>500?o/1.08:o,l=[];for(let c of e.split(/\s+/).filter(Boolean)){let m=l.at(-1),u=m===void 0?c:`${m} ${c}`;if(m!==void 0&&(l.length===r||be(u,t,i)<=a)?l[l.length-1]=u:l.push(c),l.length===r&&be(l[r-1],t,i)>a)break}return l.map(c=>({text:me(c,t,i,a),size:t,weight:n}))}var ir=60,Xi=4e6,Qi=2e6,Yi=1.5,Zi=3e3,[rr,sr]=[16,24];function ar(e){let t=Math.max(1,Math.ceil((e-1)/(ir-1))),n=Array.from({length:Math.ceil((e-1)/t)},(o,r)=>r*t);return{stride:t,steps:[...n,e-1]}}async function Ji(e,t){let n=ae(),{width:o,height:r,caption:s,draw:i,tell:a,delay:l}=e,{steps:c}=ar(e.count),m=c.map(g=>gt(a(g),rr,400,o,3,n)),u=Math.max(...m.map(g=>g.length)),h=r+12+u*sr,p=document.createElement("canvas"),f=p.getContext("2d",{willReadFrequently:!0});for(let g=Math.min(Yi,Math.sqrt(Qi/(o*h)));;g*=.7){let b=[],w=0,x=null;for(let[L,$]of c.entries()){if(await new Promise(k=>setTimeout(k)),!t(L,c.length))return null;jn({width:o,height:h,draw:k=>{i($,k,n),m[L].forEach(({text:v},E)=>k.text(0,r+12+(E+.5)*sr,v,{fill:n.ink,size:rr}))}},s,n,p,g),x=ea(f,x);let T=await new Promise(k=>p.toBlob(k,"image/png"));if(!T)throw new Error("This browser cannot encode the picture.");if(w+=T.size,w>Xi&&g>.4)break;let A=new Uint8Array(await T.arrayBuffer());b.push({png:A,delay:L===c.length-1?Zi:l,isOver:L>0})}if(b.length===c.length)return Yo(b)}}function ea(e,t){let n=e.getImageData(0,0,e.canvas.width,e.canvas.height),o=new Uint32Array(n.data.buffer),r=o.slice();for(let s=0;s<r.length;s++)r[s]|=4278190080,o[s]=t?.[s]===r[s]?0:r[s];return e.putImageData(n,0,0),r}function ta(e,t){let{stride:n}=ar(t),o=n>1?` Too long for ${ir} frames: it has one step in ${n}.`:"";return`Saved: ${Math.max(.1,e/1e6).toFixed(1)} MB.${o}`}function on(e){let t="Save animation",n=d("span",{class:"small",role:"status"}),o=d("button",{type:"button",class:"quiet",onclick:()=>{s()}},t),r="idle";async function s(){if(r=r==="idle"?"busy":"canceled",r!=="canceled"){X(n);try{let i=await e(),a=await Ji(i,(l,c)=>(o.textContent=`Cancel (${l} of ${c})`,r==="busy"));a&&(Dt(`${i.name}.png`,new Blob([a],{type:"image/png"})),X(n,ta(a.length,i.count)))}catch(i){X(n,`Not saved: ${i.message}`)}r="idle",o.textContent=t}}return d("span",{class:"animation slide-hidden"},o," ",n)}var na=/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,oa={"\n":"↵","	":"⇥","\r":"␍"},ra=/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/,lr=typeof Intl.Segmenter=="function"?new Intl.Segmenter:null;function Ft(e,t){if(e.length<=t)return e;let n=e.slice(0,t*12),o=lr?[...lr.segment(n)].map(r=>r.segment):Array.from(n);return o.length<=t&&n.length===e.length?e:o.slice(0,t-1).join("")+"…"}function qn(e){let t=e.replace(na,n=>oa[n]??`U+${n.charCodeAt(0).toString(16).toUpperCase().padStart(4,"0")}`);return ra.test(t)?`⁨${t}⁩`:t}function de(e,t=!1,n=16){if(!e)return"?";if(e.bytes)return`‹${Ft(e.bytes.toUpperCase(),n)}›`;let o=e.text.replace(/^ /,"");return o===""?"␣":(t&&/^[\p{L}\p{N}]/u.test(o)?"·":"")+Ft(qn(Ft(o,n*2)),n)}var cr=({text:e})=>/[\n\r]/.test(e)&&e.trim()==="";function ze(e,t){let[n,o]=[e[t-1],e[t]];return t>0&&o.word!==null&&o.word===n.word&&!cr(o)&&!cr(n)}var ur="‹E2 82›: part of a character, written as bytes.";function mr(e){return Object.values(e.sequences).some(t=>t.some(n=>n.bytes))}function Vn(e){return e.every(t=>t.role==="special"||t.text.length<=1)}function rt(e,t=16){let n=!Vn(e);return e.map((o,r)=>de(o,n&&ze(e,r),t))}function we(e,t=400){let n=e.map(o=>o?o.bytes?"�":o.text:"?").join("");return Ft(qn(n.trim()),t)}function Y(e,t=400){return Ft(qn(e.replace(/\s*\n\s*/g," ")),t)}var ve={"encoder.self":"Encoder self-attention","decoder.self":"Decoder self-attention","decoder.cross":"Cross-attention"},dr={"encoder.self":"source attends to source","decoder.self":"each token attends to earlier ones","decoder.cross":"generated token attends to source"};function rn(e,t){if(t.columns==="source"&&e.picture){let[o,r]=e.picture.kind==="image"?["patch","patches"]:["time step","time steps"];return t.rows==="source"?`Which ${r} each ${o} reads`:`Which ${r} it reads for each ${e.picture.kind==="image"?"word":"token"}`}let n=Vn(e.sequences[t.columns]??[])?"characters":"words";return t.name==="decoder.cross"?t.row_start>0?`Which source ${n} it reads`:"Which keys it reads":t.name==="decoder.self"?`Which earlier ${n} it reads`:`Which ${n} each ${n.slice(0,-1)} reads`}function sn(e,t,n){return`layer ${t+1} of ${e.layers}, head ${n+1} of ${e.heads}`}function wt(e,t,n){return`${ve[e]}, layer ${t+1}, head ${n+1}`}var Ht=()=>matchMedia("(any-hover: hover)").matches;function Ee(e,t,n="Click to pin it"){return Ht()?`Point at ${e} ${t}. ${n}; arrow keys move.`:`Tap ${e} ${t}.`}function an(e,t){return e.attention.find(n=>n.name===t)??e.attention[0]}function Fe(e,t){return e&&e.row<t.rows.length&&(e.column??0)<t.columns.length?e:null}var ce=class{base=d("canvas",{"aria-hidden":"true"});overlay=d("canvas",{class:"overlay","aria-hidden":"true"});element;constructor(t,n={}){this.element=d("div",{class:"stage",tabindex:0,role:"application","aria-label":t,...n},this.base,this.overlay)}draw(t,n,o){let r=ae();this.element.style.width=`${t}px`,this.element.style.height=`${n}px`,o(new ge(this.base,t,n,r.font),r)}drawOverlay(t,n,o){let r=ae();o(new ge(this.overlay,t,n,r.font),r)}describe(t,n,o){Object.assign(this.element.dataset,{left:t,top:n,cell:o})}locate(t){let n=this.base.getBoundingClientRect();return{x:(t.clientX-n.left)/Ne(),y:(t.clientY-n.top)/Ne()}}};function he(e,t,n){let o=()=>({width:t().width,height:t().height,draw:n}),r=(s,i,a)=>d("button",{type:"button",class:"quiet","aria-label":i,onclick:a},s);return d("span",{class:"saves"},r("Save as PNG","Save as PNG",()=>nr(e(),o())),r("SVG","Save as SVG",()=>or(e(),o())))}function ie(e){return e>=.01?e.toFixed(2):e===0?"0":e<.001?"< 0.001":e.toFixed(3)}function Z(e){let t=e*100;if(t>0&&t<.01)return"< 0.01 %";let n=t>=99.95||t===0?0:t>=99?1:t>=10?0:t>=1?1:2;return`${t.toFixed(n)} %`}function K(e){return`“${e}”`}function je(e,t){let n=e.sequences[t.rows]??[],o=e.sequences[t.columns]??[];return{rows:n.slice(t.row_start,t.row_start+t.row_count),columns:o.slice(0,t.column_count)}}function fe(e,t,n){let o=rt(e),r=[];return e.forEach((s,i)=>{let a=s.role==="special";if(!(a&&!n))if(t&&ze(e,i)&&r.length>0){let l=r[r.length-1];l.members.push(i),l.label=we(l.members.map(c=>e[c]),16)}else r.push({label:o[i],special:a,members:[i]})}),r}function qe(e,t,n,o){let r=[...n,...o].every(u=>u.members.length===1),s=new Uint8Array(n.length*o.length);if(r){let u=o.length===t;n.forEach((h,p)=>{let f=h.members[0]*t;u?s.set(e.subarray(f,f+t),p*t):o.forEach((g,b)=>s[p*o.length+b]=e[f+g.members[0]])})}let i=r?null:new Float32Array(s.length);i&&n.forEach((u,h)=>o.forEach((p,f)=>{let g=0;for(let b of u.members)for(let w of p.members)g+=Ie[e[b*t+w]];i[h*o.length+f]=g/u.members.length,s[h*o.length+f]=ft(g/u.members.length)}));let a=new Map,l=(u,h)=>{let p=u*o.length+h;return a.get(u)?.values[h]??(i?i[p]:Ie[s[p]])};return{rows:n,columns:o,codes:s,value:l,hidden:u=>{if(a.has(u))return a.get(u).hidden;let[h,p]=[0,0];for(let f of n[u].members)for(let g=0;g<t;g++)h+=Ie[e[f*t+g]];for(let f=0;f<o.length;f++)p+=l(u,f);return Math.max(0,h/n[u].members.length-p)},refine:(u,h)=>{let p=b=>h.reduce((w,x)=>w+x[b],0)/h.length,f=o.map(b=>b.members.reduce((w,x)=>w+p(x),0)),g=h.flat().reduce((b,w)=>b+w,0)/h.length;a.set(u,{values:f,hidden:g-f.reduce((b,w)=>b+w,0)})},isExact:u=>a.has(u)}}function We(e,t,n){let o=[];for(let r=0;r<e.columns.length;r++){let s=e.value(t,r);o.length===n&&s<=o[n-1].weight||(o.push({column:r,weight:s}),o.sort((i,a)=>a.weight-i.weight),o.length>n&&o.pop())}return o}function ln(e,t,n,o,r=1/0,s=1/0,i=!1){let a=Math.min(n,Math.max(1,Math.floor(r))),l=Math.min(t,Math.max(1,Math.floor(s))),c=new Uint32Array(a*l),m=new Uint8Array(a),u=Uint32Array.from({length:n},(h,p)=>Math.floor(p*a/n));for(let h=0;h<l;h++){let[p,f]=[Math.floor(h*t/l),Math.max(Math.floor((h+1)*t/l),1)];m.fill(0);let g=1;for(let w=p;w<Math.max(f,p+1);w++){let x=w*n;for(let L=0;L<n;L++){let $=e[x+L];$>m[u[L]]&&(m[u[L]]=$),$>g&&(g=$)}}let b=i?255/g:1;for(let w=0;w<a;w++)c[h*a+w]=o[Math.round(m[w]*b)]}return{width:a,height:l,data:c}}var sa=-53,[pr,ia]=[Math.sin(53*Math.PI/180),Math.cos(53*Math.PI/180)],Kn=140,_t=({label:e})=>e.replace(/^patch (?=\d+,\d+$)/,"");function He(e,t,n,o=640){let[r,s]=[e.rows.length,e.columns.length];if(Math.max(r,s)>96){let w=Math.min(6,(t-14)/s,Math.max(o,900)/r);return{cell:w,left:12,top:12,width:s*w+14,height:r*w+14,labeled:!1,level:!1,size:0}}let i=t<600?12:13,a=w=>Math.min(Kn,Math.max(12,...w.map(x=>be(x,i,n.font)))),l=a(e.rows.map(_t))+10,c=a(e.columns.map(_t)),m=e.columns.slice(-6).map((w,x,L)=>a([_t(w)])*ia-(L.length-1-x)*16),u=Math.max(0,...m)+6,h=(t-l-u)/Math.max(s,1),p=Math.min(Math.max(s,r)<=6?120:96,(o-c*pr-24)/r),f=Math.max(t<600?18:16,Math.floor(Math.min(p,h))),g=c<=f-4,b=g?24:c*pr+16;return{cell:f,left:l,top:b,width:l+s*f+u,height:b+r*f+4,labeled:!0,level:g,size:i}}function Ae(e,t,n,o,r={}){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],[m,u]=[c*s,l*s],h=ln(t.codes,l,c,o.pixels,m*(r.pixelRatio??1),u*(r.pixelRatio??1),r.stretched);e.pixels(i,a,m,u,h),e.rect(i-.5,a-.5,m+1,u+1,{stroke:o.rule}),Ot(e,t,n,o,null),r.numbers&&t.rows.forEach((p,f)=>hr(e,t,n,o,f,r))}function hr(e,t,n,o,r,{stretched:s}={}){let{cell:i,left:a,top:l}=n;if(!n.labeled||i<26)return;let c=t.codes.subarray(r*t.columns.length,(r+1)*t.columns.length),m=s?255/Math.max(1,...c):1;t.columns.forEach((u,h)=>{let p=t.value(r,h);if(p<.005)return;let f=nn(o.ramp[Math.round(c[h]*m)]),g=p.toFixed(2).replace(/^0/,""),b=i>50?14:11;e.text(a+(h+.5)*i,l+(r+.5)*i,g,{fill:f,size:b,anchor:"middle"})})}function Ot(e,t,n,o,r){if(!n.labeled)return;let s=i=>i?o.accent:o.muted;t.rows.forEach((i,a)=>fr(e,t,n,o,a,s(a===r?.row))),t.columns.forEach((i,a)=>br(e,t,n,o,a,s(a===r?.column)))}function Ze(e,t,n,o,r,s,i={}){let{cell:a,left:l,top:c}=n,m=t.columns.length*a,u=c+r.row*a,h=s?2.5:1.5;if(!n.labeled){let p=l+((r.column??0)+.5)*a;e.path(`M${l} ${u+a/2}h${m}`,{stroke:o.accent,width:1}),r.column!==null&&(e.path(`M${p} ${c}v${t.rows.length*a}`,{stroke:o.accent,width:1,opacity:.5}),e.rect(p-5,u+a/2-5,10,10,{stroke:o.accent,width:h,radius:5}));return}i.numbers||hr(e,t,n,o,r.row,i),e.rect(l,u,m,a,{stroke:o.accent,width:h}),fr(e,t,n,o,r.row,o.accent),r.column!==null&&(e.rect(l+r.column*a,u,a,a,{stroke:o.accent,width:h+.5}),br(e,t,n,o,r.column,o.accent))}function Ue(e,t,n,o){let r=Math.floor((o-t.top)/t.cell),s=Math.floor((n-t.left)/t.cell);return r<0||r>=e.rows.length||s>=e.columns.length?null:{row:r,column:s<0?null:s}}function cn(e,t,n,o=1){let r=i=>o!==null?ie(i*o).replace("1.00","1"):i===1?"row's largest":i===.5?"":`${i*100} %`,s=Uint32Array.from({length:256},(i,a)=>t.pixels[a]);e.pixels(0,2,n,10,{width:256,height:1,data:s}),e.path(`M0 1.5h${n}`,{stroke:t.rule});for(let i of[0,.1,.25,.5,1]){let a=Math.sqrt(i)*(n-1)+.5;e.path(`M${a} 12v4`,{stroke:t.muted});let l=i===0?"start":i===1?"end":"middle";e.text(i===0?0:a,23,r(i),{fill:t.muted,size:11,anchor:l})}}function fr(e,t,n,o,r,s){let i=me(_t(t.rows[r]),n.size,o.font,Kn),a=n.top+(r+.5)*n.cell;e.text(n.left-6,a,i,{fill:s,size:n.size,anchor:"end"})}function br(e,t,n,o,r,s){let i=me(_t(t.columns[r]),n.size,o.font,Kn),a=n.left+(r+.5)*n.cell;n.level?e.text(a,n.top-12,i,{fill:s,size:n.size,anchor:"middle"}):e.text(a,n.top-7,i,{fill:s,size:n.size,angle:sa})}var un=["","7 4","2 3","9 3 2 3"],aa={loss:"Loss",learning_rate:"Learning rate",bleu:"BLEU",chrf:"chrF",f1:"F1",bits_per_byte:"Bits per byte"};function xt(e){return aa[e]??e.charAt(0).toUpperCase()+e.slice(1).replaceAll("_"," ")}function mn(e){let t=e.runs.flatMap(n=>[...Object.keys(n.validation),...Object.keys(n.training)]);return[...new Set(["loss",...t])]}function yt(e,t){return e.runs.flatMap((n,o)=>{let r=un[o%un.length];return[{curve:n.training[t],dash:r,dots:!1},{curve:n.validation[t],dash:r,dots:!0}].filter(({curve:i})=>i?.steps.length>0)})}function gr(e,t,n){let o=(t-e)/Math.max(n,1);if(!(o>0))return[e];let r=10**Math.floor(Math.log10(o)),s=[1,2,5,10].map(a=>a*r).find(a=>a>=o*.999),i=[];for(let a=Math.ceil(e/s-1e-9);a*s<=t+s*1e-9;a++)i.push(a*s);return i}function wr(e,t,n,o,r){let s=e.flatMap(({curve:b})=>b.values.filter(w=>w!==null)),[i,a]=[Math.min(...s),Math.max(...s)];s.length===0&&([i,a]=[0,1]),i===a&&([i,a]=[i-Math.abs(i||1)*.1,a+Math.abs(a||1)*.1]);let[l,c,m,u]=[56,14,10,26],h=Math.max(t,1),p=n?b=>Math.log2(b+1)/Math.log2(h+1):b=>b/h,f=[0,...Array.from({length:9},(b,w)=>10**w)].filter(b=>b<=h),g={x:o-l-c,y:r-m-u};return{width:o,height:r,left:l,right:c,top:m,bottom:u,x:b=>l+p(b)*g.x,y:b=>m+(a-b)/(a-i)*g.y,xTicks:n?f:gr(0,h,Math.max(2,Math.floor(g.x/110))),yTicks:gr(i,a,4)}}function dn(e,t,n,o,r){let s=o.height-o.bottom;for(let a of o.yTicks){let l=o.y(a);e.path(`M${o.left} ${l}H${o.width-o.right}`,{stroke:t.rule}),e.text(o.left-8,l,la(a),{fill:t.muted,size:12,anchor:"end"})}for(let a of o.xTicks){let l=o.x(a)>o.width-40?"end":"middle",c=Math.min(o.x(a),o.width-2);e.text(c,s+17,a.toLocaleString("en"),{fill:t.muted,size:12,anchor:l})}e.path(`M${o.left} ${s}H${o.width-o.right}`,{stroke:t.muted});for(let a of r)e.path(`M${o.x(a)} ${s}v5`,{stroke:t.muted});let i=n.some(a=>a.dots);for(let{curve:a,dash:l,dots:c}of n){let m=a.steps.flatMap((h,p)=>{let f=a.values[p];return f===null?[]:[`${o.x(h).toFixed(1)} ${o.y(f).toFixed(1)}`]});if(m.length===0)continue;let u=i&&!c;if(e.path(`M${m.join("L")}`,{stroke:t.hue,width:u?1.2:2.2,opacity:u?.45:1,dash:l}),c&&m.length<=80)for(let h of m){let[p,f]=h.split(" ").map(Number);e.rect(p-3,f-3,6,6,{fill:t.hue,radius:3})}}}function pn(e,t,n,o){let r=n.x(o);e.path(`M${r} ${n.top}V${n.height-n.bottom+6}`,{stroke:t.accent,width:2})}function xr(e,t){let n=null;return e?.steps.forEach((o,r)=>{o<=t&&(n=e.values[r])}),n}function la(e){return e!==0&&(Math.abs(e)<.001||Math.abs(e)>=1e5)?e.toExponential(0):String(Number(e.toPrecision(4)))}function hn(e,t){let[n,o,r]=[0,e.length,t.length];for(;n<o&&n<r&&e[n]===t[n];)n++;for(;o>n&&r>n&&e[o-1]===t[r-1];)[o,r]=[o-1,r-1];let[s,i]=[o-n,r-n],a=s*i<=4e6,l=i+1,c=a?new Uint16Array((s+1)*l):null;if(c)for(let p=s-1;p>=0;p--)for(let f=i-1;f>=0;f--)c[p*l+f]=e[n+p]===t[n+f]?c[(p+1)*l+f+1]+1:Math.max(c[(p+1)*l+f],c[p*l+f+1]);let m=Array.from({length:n},(p,f)=>({kind:"same",a:f,b:f})),[u,h]=[0,0];for(;u<s||h<i;)c&&u<s&&h<i&&e[n+u]===t[n+h]?m.push({kind:"same",a:n+u++,b:n+h++}):u<s&&(!c||h===i||c[(u+1)*l+h]>=c[u*l+h+1])?m.push({kind:"removed",a:n+u++}):m.push({kind:"added",b:n+h++});for(let p=0;o+p<e.length;p++)m.push({kind:"same",a:o+p,b:r+p});return m}var ca="\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}",ua=new RegExp(`\\s*(?:(?:(?![${ca}])[\\p{L}\\p{M}\\p{N}_'’-])+|\\S)`,"gu");function yr(e){return e.match(ua)??[]}function kt(e,t){let[n,o]=[yr(e),yr(t)],r=s=>s.map(i=>i.trim());return hn(r(n),r(o)).map(s=>({kind:s.kind,text:s.kind==="removed"?n[s.a]:o[s.b]}))}function kr(e){let t=n=>e.filter(o=>o.kind===n&&/[\p{L}\p{N}]/u.test(o.text)).length;return Math.max(t("removed"),t("added"))}var[Xn,fn]=[120,30];function Qn(e,t,n){let[o,{reference:r,reference_length:s}]=[e.frames[t].probes[n],e.probes[n]],i=(m,u)=>m===null?"":`${Z(m)}${u>1?" per token":""}`,a=i(tn(o.logprob,o.length),o.length),l=i(tn(o.reference_logprob,s),s),c=r!==""&&o.output.trim()===r.trim();return[a&&`Output ${a}`,c?"equal to the reference":l&&`reference ${l}`].filter(Boolean).join(" · ")}function vr(e){let t=d("div",{class:"examples",role:"group","aria-label":"Examples"}),n=[],o=null;function r(i){o=i,n=i.probes.map((a,l)=>{let c=d("strong",{dir:"auto"}),m=d("span",{class:"small"}),u=d("canvas",{"aria-hidden":"true",title:"Probability of the reference over the training"}),h=d("button",{type:"button",class:"example",onclick:()=>e.set({probe:l})},d("span",{class:"source",dir:"auto"},Y(a.text,160)),c,a.reference?d("span",{class:"small",dir:"auto"},`Reference: ${Y(a.reference,160)}`):null,d("span",{class:"numbers"},u,m));return{output:c,numbers:m,line:u,button:h}}),X(t,...n.map(a=>a.button))}function s(i){o!==i&&r(i);let{frame:a,probe:l}=e.state;n.forEach((c,m)=>{let u=i.frames[a].probes[m].output,h=a>0?i.frames[a-1].probes[m].output:u,f=kt(h.slice(0,2e3),u.slice(0,2e3)).filter(g=>g.kind!=="removed").map(g=>g.kind==="added"?d("mark",{},Y(g.text,60)):Y(g.text,60));X(c.output,...u.trim()===""?[d("span",{class:"small"},"(nothing)")]:f),c.numbers.textContent=Qn(i,a,m),c.button.setAttribute("aria-pressed",String(m===l)),ma(c.line,i,m,a)})}return{element:t,update:s,reset:()=>o=null}}function ma(e,t,n,o){let r=ae(),s=t.probes[n].reference_length,i=t.frames.map(h=>tn(h.probes[n].reference_logprob,s));if(e.hidden=i.every(h=>h===null),e.hidden)return;let a=new ge(e,Xn,fn,r.font),l=h=>3+h/Math.max(1,i.length-1)*(Xn-6),c=h=>fn-3-h*(fn-6),m=i.flatMap((h,p)=>h===null?[]:[`${l(p).toFixed(1)} ${c(h).toFixed(1)}`]);a.path(`M0 ${fn-2.5}H${Xn}`,{stroke:r.rule}),a.path(`M${m.join("L")}`,{stroke:r.hue,width:1.6});let u=i[o];u!==null&&a.rect(l(o)-3,c(u)-3,6,6,{fill:r.accent,radius:3})}var Yn={"decoder.cross":"Which source words it reads","decoder.self":"Which earlier words it reads","encoder.self":"Which words each word reads","":""};function Zn(e,t,n,o){let[r,s]=[[],[]],i=(a,l)=>Array.from({length:Math.max(a.length,l.length)},(c,m)=>{let[u,h]=[a[m],l[m]];return!h||u&&u.label.length>=h.label.length?u:h});for(let a of e.frames){let l=Nn(e,a,t),c=a.probes[t].shape;r=i(r,fe(l.rows.slice(0,c[2]),!1,!0)),s=i(s,fe(l.columns.slice(0,c[3]),!1,!0))}return He({rows:r,columns:s},n,ae(),o)}async function Jn(e,t,n,o,r){let s=Ko(e,t,n,o,r),{codes:i}=await Xo(t);if(!s)return null;let a=Nn(e,t,n),l=i.subarray(s.start,s.start+s.rows*s.columns),c=fe(a.rows.slice(0,s.rows),!1,!0);return qe(l,s.columns,c,fe(a.columns.slice(0,s.columns),!1,!0))}function $r(e){let t=d("h2"),n=d("div",{class:"head-grid",role:"group","aria-label":"Layers and heads"}),o=d("p",{class:"readout",role:"status"}),r=new ce("Attention of the chosen head",{role:"img",tabindex:null}),s=d("div",{class:"scroller",tabindex:0,role:"region","aria-label":"Map"},r.element),i=d("div",{class:"detail"},t,n,o,s),[a,l]=[null,null],c=[],m=0;function u(b){let{name:w,layers:x,heads:L}=b.attention,$=w==="decoder.cross"?x:Math.min(x,1);c=[];let M=Array.from({length:$},(T,A)=>x-$+A).map(T=>[d("span",{class:"small"},`layer ${T+1}`),...Array.from({length:L},(A,k)=>{let v=`layer ${T+1}, head ${k+1}`,S=d("button",{type:"button","aria-label":v,onclick:()=>e.set({layer:T,head:k})},String(k+1));return c.push({button:S,layer:T,head:k}),S})]);n.style.gridTemplateColumns=`max-content repeat(${L}, max-content)`,X(n,...M.flat())}let h=null,p=null;async function f(b){if(i.hidden=b.attention.layers===0,i.hidden)return;let{frame:w,probe:x,layer:L,head:$}=e.state;p!==b&&(p=b,u(b));for(let v of c)v.button.setAttribute("aria-pressed",String(v.layer===L&&v.head===$));t.textContent=Yn[b.attention.name];let M=i.clientWidth;(h?.film!==b||h.probe!==x||h.width!==M)&&(h={film:b,probe:x,width:M,layout:Zn(b,x,Math.max(240,M-8||560))});let T=b.frames[w],A=++m,k=await Jn(b,T,x,L,$);A===m&&(l=h.layout,a=k,r.draw(l.width,l.height,(v,E)=>{a&&Ae(v,a,l,E,{pixelRatio:window.devicePixelRatio})}),r.describe(l.left,l.top,l.cell),r.element.dataset.frame=String(w),g(null))}function g(b){let w=a&&l&&b&&Ue(a,l,r.locate(b).x,r.locate(b).y);if(l&&r.drawOverlay(l.width,l.height,(x,L)=>{w&&Ze(x,a,l,L,w,!1)}),!a)o.textContent="The map of this head is too large for the film.";else if(w){let x=We(a,w.row,3).map(({column:L,weight:$})=>`${K(a.columns[L].label)} ${ie($)}`);o.textContent=`${K(a.rows[w.row].label)} reads ${x.join(", ")}.`}else o.textContent=Ht()?"Point at a row to see what it reads.":"Tap a row to see what it reads."}return r.element.addEventListener("pointermove",g),r.element.addEventListener("pointerdown",g),r.element.addEventListener("pointerleave",()=>g(null)),{element:i,update:f}}var Mr=236,st={width:520,height:200},eo=40,Lr={width:460,height:420};function to({step:e,loss:t}){let n=t===null?"before the first step":`loss ${t.toFixed(3)}`;return`Step ${e.toLocaleString("en")} · ${n}`}async function Tr({doc:e,state:t},n,o,r,s){let{probe:i,layer:a,head:l,metric:c}=t,m=await Promise.all(n.frames.map(b=>Jn(n,b,i,a,l))),u=m.some(b=>b!==null),h=Zn(n,i,Lr.width,Lr.height),p={...h,left:h.left+st.width+eo,top:h.top+32},f=pa(n,i,ae()),g=`${Yn[n.attention.name]} (layer ${a+1}, head ${l+1})`;return{name:"film",caption:{title:Y(e.text,160),lines:r},width:st.width+(u?eo+Math.max(h.width,320):0),height:Math.max(f.bottom,u?h.height+36:0),count:n.frames.length,delay:s,draw:(b,w,x)=>{da(w,x,e,n,o,c,n.frames[b].step),f.draw(b,w),u&&(w.text(st.width+eo,10,g,{fill:x.muted,size:13}),m[b]&&Ae(w,m[b],p,x,{pixelRatio:1.5}))},tell:b=>to(n.frames[b])}}function da(e,t,n,o,r,s,i){let a=o.frames.map(c=>c.step);dn(e,t,yt(n,s),r,a),pn(e,t,r,i);let l={fill:t.muted,size:13,anchor:"end"};e.text(r.width-r.right,r.height+12,`${xt(s)} by step`,l)}function pa(e,t,n){let{text:o,reference:r}=e.probes[t],s=e.frames.map(p=>p.probes[t].output.trim()||"(nothing)"),i=(p,f,g)=>gt(Y(p,300),f,400,st.width,g,n),a=i(o,14,2),l=s.map(p=>i(p,19,3)),c=r?i(`Reference: ${r}`,13,2):[],m=Mr+a.length*20+6,u=m+Math.max(...l.map(p=>p.length))*27+6,h=u+c.length*19;return{bottom:h+20,draw(p,f){let g=(b,w,x,L,$)=>b.forEach(({text:M},T)=>f.text(0,w+(T+.5)*x,M,{fill:L,size:$}));g(a,Mr,20,n.muted,14),g(l[p],m,27,n.ink,19),g(c,u,19,n.muted,13),g([{text:Qn(e,p,t)}],h,19,n.muted,13)}}}function bn({film:e}){let[t,n]=e?.default_head??[0,0];return{frame:(e?.frames.length??1)-1,probe:0,layer:t,head:n,metric:"loss",isLog:e!==null}}function Sr(e,t,n){let r=[["step",n.film?.frames[e.frame]?.step??0,e.frame!==t.frame],["example",e.probe+1,e.probe!==t.probe],["layer",e.layer+1,e.layer!==t.layer||e.head!==t.head],["head",e.head+1,e.layer!==t.layer||e.head!==t.head],["curve",encodeURIComponent(e.metric),e.metric!==t.metric],["axis",e.isLog?"log":"linear",e.isLog!==t.isLog]].filter(([,,s])=>s).map(([s,i])=>`${s}=${i}`);return`#film${r.length?`?${r.join("&")}`:""}`}function no(e,t){let n=bn(t),{film:o}=t,r=new URLSearchParams(e.split("?")[1]??""),s=(a,l)=>{let c=Number(r.get(a))-1;return r.has(a)&&Number.isInteger(c)&&c>=0&&c<l?c:null};if(o){let a=en(o.frames,Number(r.get("step")));/^\d+$/.test(r.get("step")??"")&&a>=0&&(n.frame=a),n.probe=s("example",o.probes.length)??n.probe;let[l,c]=[s("layer",o.attention.layers),s("head",o.attention.heads)];l!==null&&c!==null&&Object.assign(n,{layer:l,head:c})}let i=r.get("curve");return i&&mn(t).includes(i)&&(n.metric=i),["log","linear"].includes(r.get("axis")??"")&&(n.isLog=r.get("axis")==="log"),n}var Er=`#panel > section > .controls {
  margin-top: 16px;
}
.scrubber-row {
  display: flex;
  gap: 14px;
  align-items: center;
  flex-wrap: wrap;
  margin: 10px 0 2px;
}
.scrubber-row button {
  min-width: 76px;
}
.scrubber {
  flex: 1 1 240px;
  accent-color: var(--accent);
  margin: 0;
  height: 28px;
}
.scrubber-row output {
  min-width: 15em;
}
.shots {
  display: grid;
  grid-template-columns: minmax(280px, 1fr) minmax(0, 1.2fr);
  gap: 32px;
  align-items: start;
  margin-top: 16px;
}
.examples {
  display: grid;
  gap: 8px;
}
.example {
  display: grid;
  gap: 2px;
  justify-items: start;
  text-align: start;
  padding: 8px 12px;
  overflow-wrap: anywhere;
}
.example[aria-pressed="true"] {
  border-color: var(--accent);
  box-shadow: 0 0 0 1px var(--accent);
}
.example .source {
  color: var(--muted);
}
.example strong {
  font-weight: 500;
  font-size: 17px;
}
.example mark {
  background: color-mix(in srgb, var(--hue) 22%, var(--page));
  color: inherit;
  border-radius: 3px;
}
.example .numbers {
  display: flex;
  gap: 10px;
  align-items: center;
  flex-wrap: wrap;
}
@media (max-width: 760px) {
  .shots {
    grid-template-columns: minmax(0, 1fr);
    gap: 18px;
  }
  .scrubber {
    flex-basis: 100%;
    order: 1;
  }
}
`;var Ar=300,fa=4e3;function Rr(e,t){let n={doc:e,state:no(location.hash,e),set(P){n.state={...n.state,...P},y(),clearTimeout(o),o=setTimeout(C,100)}},o,r,s=d("p",{class:"small",role:"status"}),i=d("div",{class:"controls"}),a=new ce("Curves of the run",{role:"img",tabindex:null}),l=d("p",{class:"small"}),c=d("input",{type:"range",min:0,class:"scrubber","aria-label":"Step of the training"}),m=d("button",{type:"button",onclick:()=>r?k():v()},"Play"),u=d("output",{class:"small"}),h=d("p",{class:"small"}),p=vr(n),f=$r(n),g=on(()=>{let P=E(st.width,st.height);return Tr(n,n.doc.film,P,Cr(n.doc),Ar)}),b=d("div",{class:"scrubber-row"},m,c,u,g),w=d("div",{class:"shots"},p.element,f.element),x=d("div"),L=d("footer",{class:"small"},"Made with Regard: ",d("code",{},"regard look RUN")),$=d("div",{id:"panel"},d("section",{"aria-label":"Training"},i,a.element));$.firstElementChild.append(l,b,h,w),X(t,d("header",{},d("div",{},d("h1",{},Y(e.text,160)),s,x)),d("main",{},$,L));let M=()=>n.doc.film?.frames??[],T=P=>n.set({frame:Math.max(0,Math.min(M().length-1,P))}),A=()=>matchMedia("(prefers-reduced-motion: reduce)").matches;function k(){clearInterval(r),r=void 0,m.textContent="Play"}function v(){if(A())return T(n.state.frame+1);n.state.frame>=M().length-1&&T(0),m.textContent="Pause",r=setInterval(()=>{T(n.state.frame+1),n.state.frame>=M().length-1&&k()},Ar)}c.addEventListener("input",()=>{k(),T(Number(c.value))}),window.addEventListener("keydown",P=>{let N=P.target;if(!M().length||P.ctrlKey||P.metaKey||P.altKey||N.closest("select, .scroller"))return;if(P.key===" "&&!N.closest("button"))return P.preventDefault(),r?k():v();let[z,j]=[n.state.frame,M().length-1],V={ArrowLeft:z-1,ArrowRight:z+1,Home:0,End:j}[P.key];V!==void 0&&(P.preventDefault(),k(),T(V))}),a.element.addEventListener("click",P=>{if(!M().length)return;let{x:N}=a.locate(P),z=j=>Math.abs(S().x(M()[j].step)-N);k(),T(M().reduce((j,V,_)=>z(_)<z(j)?_:j,0))});function E(P,N){let{doc:z,state:j}=n,V=yt(z,j.metric),_=z.runs.flatMap(W=>[...Object.values(W.training),...Object.values(W.validation)]),U=Math.max(1,..._.map(W=>W.steps.at(-1)??0),M().at(-1)?.step??0);return wr(V,U,j.isLog,P,N)}let S=()=>E(Math.max(260,($.clientWidth||800)-4),window.innerWidth<760?170:220);function O(){let{doc:P,state:N}=n,z=S(),j=M().map(V=>V.step);a.draw(z.width,z.height,(V,_)=>dn(V,_,yt(P,N.metric),z,j)),a.drawOverlay(z.width,z.height,(V,_)=>{M().length&&pn(V,_,z,M()[N.frame].step)}),a.element.setAttribute("aria-label",`${xt(N.metric)} by step`)}function H(){let{doc:P,state:N}=n,z=mn(P).map(V=>[V,xt(V)]),j=[["log","logarithmic"],["linear","linear"]];X(i,Se("Curve",z,N.metric,V=>n.set({metric:V})),Se("Steps",j,N.isLog?"log":"linear",V=>n.set({isLog:V==="log"})))}let D=null;function y(){let{doc:P,state:N}=n;(D?.doc!==P||D.metric!==N.metric||D.isLog!==N.isLog)&&(D={doc:P,metric:N.metric,isLog:N.isLog},i.contains(document.activeElement)||H(),X(s,...Cr(P).flatMap((V,_)=>[_>0&&d("br"),V])),X(x,...P.notes.map(V=>d("p",{class:"note"},Y(V)))),l.textContent=ba(P,N.metric)),O();let{film:z}=P;for(let V of[b,h,w])V.hidden=!z;if(!z)return;let j=z.frames[N.frame];Object.assign(c,{max:String(z.frames.length-1)}),c.value=String(N.frame),g.hidden=z.frames.length<2,u.textContent=to(j),c.setAttribute("aria-valuetext",u.textContent),h.textContent=Ht()?"Arrow keys move, Space plays. Marked words are new since the frame before.":"",p.update(z),f.update(z)}function C(){let P=Sr(n.state,bn(n.doc),n.doc);try{P!==location.hash&&history.replaceState(null,"",P)}catch{}}window.addEventListener("hashchange",()=>{n.state=no(location.hash,n.doc),D=null,y()});async function R(){let{doc:P,state:N}=n,z=new URL("document",location.href);z.searchParams.set("version",P.version);let j=await fetch(z).catch(()=>null),V=j?.ok?await j.json():null;if(!V?.runs)return;let _=P.film?.frames[N.frame]?.step??0,U=N.frame>=M().length-1,W=en(V.film?.frames??[],_);n.doc=V;let oe=bn(V),te=U?oe.frame:Math.max(0,W);n.state=P.film?{...N,frame:te}:{...oe,metric:N.metric},y()}if(e.live&&location.protocol.startsWith("http")){let P=()=>n.doc.runs.every(j=>j.is_finished),N=!1,z=async()=>{N||document.hidden||P()||(N=!0,await R().finally(()=>N=!1))};setInterval(z,fa),document.addEventListener("visibilitychange",z)}let I=window.innerWidth,G=()=>{p.reset(),y()};window.addEventListener("resize",()=>{window.innerWidth!==I&&G(),I=window.innerWidth}),matchMedia("(prefers-color-scheme: dark)").addEventListener("change",G),document.head.append(d("style",{},Er)),y()}function Cr(e){return e.runs.map(t=>{let n=t.training.loss?.steps.at(-1)??0,o=t.validation[t.metric],r=xr(o,1/0),s=[`${e.runs.length>1?`${t.name}: `:""}${t.is_finished?"finished at step":"step"} ${n.toLocaleString("en")}`,t.is_finished?"":`of ${t.steps.toLocaleString("en")}`,r===null?"":`· validation ${xt(t.metric).toLowerCase()} ${r.toFixed(3)}`];return Y(s.filter(Boolean).join(" "))})}function ba(e,t){let n=yt(e,t),o=a=>n.some(l=>l.dots===a),r=o(!0)&&o(!1)?"Thin: training. Thick with dots: validation.":"",s=["solid","dashed","dotted","dash-dotted"],i=e.runs.length>1?e.runs.map((a,l)=>`${s[l%un.length]}: ${a.name}`):[];return Y([r,i.join(", ")].filter(Boolean).join(" "))}var Ce=e=>/^[1-9]\d{0,6}$/.test(e)?Number(e)-1:null,Je=(e,t)=>({name:t,write:n=>n[e]?"1":"0",read:n=>n==="1"||n==="0"?{[e]:n==="1"}:null}),Dr=(e,t,n)=>({name:t,write:o=>o[e],read:o=>n.includes(o)?{[e]:o}:null}),Bt=(e,t)=>({name:t,write:n=>String(n[e]+1),read:n=>Ce(n)===null?null:{[e]:Ce(n)}}),ga=(e,t)=>e.attention.some(n=>n.name===t),Nt=[{name:"attention",write:e=>e.group,read:(e,t)=>ga(t,e)?{group:e}:null},Bt("layer","layer"),Bt("head","head")],It={name:"pin",write:({locked:e})=>e?[e.row,e.column].map(t=>t===null?"":t+1).join():"",read:e=>{let[t,n]=e.split(",").map(Ce);return t==null?null:{locked:{row:t,column:n??null}}}},Pr=[...Nt,Je("meanOfHeads","mean"),{name:"from",write:({query:e})=>e===null?"":e==="mean"?"all":String(e+1),read:e=>e==="all"?{query:"mean"}:Ce(e)===null?null:{query:Ce(e)}}],Fr={name:"off",write:({headsOff:e})=>e.map(t=>t.replace(/(\d+)\.(\d+)$/,(n,o,r)=>`${+o+1}.${+r+1}`)).join(),read:(e,t)=>{let n=e.split(",").flatMap(o=>{let r=o.split("."),[s,i]=r.slice(2).map(Ce),a=t.attention.find(c=>c.name===r.slice(0,2).join("."));return a&&s!==null&&i!==null&&s<a.layers&&i<a.heads?[`${a.name}.${s}.${i}`]:[]});return n.length?{headsOff:[...new Set(n)].slice(0,t.live?void 0:1)}:null}},wa={ablation:"break"},Hr={story:[{name:"step",write:({beat:e})=>e===null?"":String(e+1),read:e=>Ce(e)===null?null:{beat:Ce(e)}}],image:Pr,spectrogram:Pr,heads:[...Nt,Dr("drawing","drawing",["heatmap","lines"]),Je("words","words"),Je("specials","special"),Je("numbers","numbers"),Je("stretched","stretched"),It],compare:[...Nt,{name:"against",write:({againstHead:e})=>e?e.map(t=>t+1).join("."):"",read:e=>{let[t,n]=e.split(".").map(Ce);return t===null||n===null||n===void 0?null:{againstHead:[t,n]}}},{name:"position",write:({compared:e})=>e===null?"":String(e+1),read:e=>Ce(e)===null?null:{compared:Ce(e)}},Je("words","words"),It],search:[{name:"hypothesis",write:({candidate:e})=>e===null?"":String(e),read:(e,t)=>/^\d{1,7}$/.test(e)&&Number(e)<(t.search?.step.length??0)?{candidate:Number(e)}:null},{name:"steps",write:e=>e.unfolded?"all":"",read:e=>e==="all"?{unfolded:!0}:null}],alignment:[Bt("hypothesis","hypothesis"),Dr("alignment","drawing",["ribbons","matrix"]),Je("alignedTokens","tokens"),{name:"heads",write:({alignedHeads:e})=>e.map(t=>t.split(".").map(n=>Number(n)+1).join(".")).join(),read:e=>{let t=e.split(",").map(n=>n.split(".").map(Ce));return t.every(n=>n.length===2&&!n.includes(null))?{alignedHeads:t.map(n=>n.join("."))}:null}},It],attribution:[{name:"method",write:e=>e.method,read:(e,t)=>Object.hasOwn(t.attribution?.methods??{},e)?{method:e}:null},It],break:[Fr,{name:"head",write:()=>"",read:Fr.read}],sampling:[Bt("step","step")],masks:[{name:"attention",write:e=>e.mask,read:(e,t)=>t.masks.some(n=>n.group===e)?{mask:e,hiddenTerms:[]}:null},It],positions:[{name:"stack",write:e=>e.stack,read:(e,t)=>t.positions.some(n=>n.stack===e)?{stack:e}:null}],merges:[Bt("merge","merge")]},_r=[Je("present","present")];function oo(e,t){let n=s=>s.write(e)!==s.write(t),r=[...Hr[e.view]??[],..._r].filter(s=>Nt.includes(s)?Nt.some(n):n(s)).map(s=>`${s.name}=${encodeURIComponent(s.write(e)).replaceAll("%2C",",")}`);return`#${e.view}${r.length?`?${r.join("&")}`:""}`}function ro(e,t,n,o){let[r,s]=e.replace(/^#/,"").split("?"),i=wa[r]??r;if(!o.includes(i))return t;let a={...t,view:i},l=new URLSearchParams(s??"");for(let m of[...Hr[i]??[],..._r]){let u=l.get(m.name);u&&Object.assign(a,m.read(u,n)??{})}let c=n.attention.find(m=>m.name===a.group);return c&&(a.layer>=c.layers||a.head>=c.heads)&&([a.layer,a.head]=c.default_head),a}var vt=class{constructor(t,n=!1){this.doc=t;this.isAgainst=n;this.available=t.live&&location.protocol.startsWith("http")}doc;isAgainst;available;async look(t){let n=new URLSearchParams(Object.entries(t).map(([o,r])=>[o,String(r)]));return(await this.send(new URL("look",location.href),{method:"POST",body:n})).document}map(t,n,o){return this.ask("map",{group:t,layer:n,head:o})}async row(t,n,o,r){return(await this.ask("row",{group:t,layer:n,head:o,row:r})).weights}continue(t){return this.ask("continue",{candidate:t})}hypothesis(t){return this.ask("hypothesis",{candidate:t})}logits(t){return this.ask("logits",{position:t})}ablate(t){return this.ask("ablate",{head:t})}async ask(t,n){let o=new URL(t,location.href);for(let[r,s]of Object.entries(n))[s].flat().forEach(i=>o.searchParams.append(r,String(i)));return this.doc.session&&o.searchParams.set("session",String(this.doc.session.number)),this.isAgainst&&o.searchParams.set("side","against"),this.send(o)}async send(t,n){let o=await fetch(t,n).catch(()=>{throw new Error("The server does not respond. Is the command still running?")}),r=await o.json().catch(()=>({}));if(!o.ok)throw new Error(r.error??`The server answered ${o.status}.`);return r}};var gn=class{constructor(t){this.state=t}state;listeners=[];pending=null;set(t){let n=Object.keys(t).filter(o=>t[o]!==this.state[o]);n.length!==0&&(this.state={...this.state,...t},this.notify(n))}notify(t=[]){if(this.pending){for(let n of t)this.pending.add(n);return}this.pending=new Set(t),queueMicrotask(()=>{let n=this.pending;this.pending=null;for(let o of this.listeners)o(n)})}subscribe(t){this.listeners.push(t)}};function Re(e){let t=e.predictions.map((o,r)=>r),n=t.filter(o=>e.predictions[o].position===null||e.predictions[o].labels[0]!=="O");return n.length===0?{told:t,untagged:0}:{told:n,untagged:t.length-n.length}}function $t(e){return e===0?"":e===1?"1 other word has no tag.":`${e.toLocaleString("en")} other words have no tag.`}var io=e=>e.predictions.length===1&&e.predictions[0].position===null&&e.predictions[0].labels.length>0?e.predictions[0]:null;function xa(e){let{told:t,untagged:n}=Re(e);if(n===0)return null;let o=e.sequences.source??[],r=t.map(s=>{let{position:i,labels:a}=e.predictions[s],l=o[i??0]?.word;return[o.filter((m,u)=>u===i||l!==null&&m.word===l).map(({text:m})=>m).join("").trim(),a[0]]});return r.every(([s,i])=>e.output.includes(`${s}/${i}`))?r.map(s=>s.join(": ")).join(", "):null}function et(e){let t=xa(e);if(t)return t;let n=io(e)?.labels[0].trim();return n&&/^\d+$/.test(n)?`Label ${n}`:e.output||e.text}var Or=e=>(e.sequences.target??[]).flatMap(({logprob:t})=>t===void 0?[]:[t??-1/0]),so=e=>e.reduce((t,n)=>t+n,0);function Ir(e){let t=e.predictions.filter(n=>n.probabilities.length>0);return t.length===0?null:{count:t.length,least:t.reduce((n,o)=>o.probabilities[0]<n.probabilities[0]?o:n)}}function wn(e){let t=io(e);if(t)return{kind:"label",value:t.probabilities[0]};if(e.predictions.length>0){let o=Ir(e);return o&&{kind:"prediction",value:o.least.probabilities[0]}}let n=Or(e);return n.length===0?null:e.sampling?{kind:"token",value:Math.exp(so(n)/n.length)}:{kind:"sequence",value:Math.exp(so(n))}}function Br(e){let t=wn(e);if(!t)return null;let n=Z(t.value),o=io(e);if(o){let a=o.labels.slice(1,4).map((l,c)=>`${l.trim()} ${Z(o.probabilities[c+1])}`);return{text:`${n} sure`,title:a.length?`Next: ${a.join(", ")}`:""}}if(t.kind==="prediction"){let{count:a,least:l}=Ir(e),c=`Of ${K(l.labels[0].trim())}, the least certain of ${a} predictions`;return a===1?{text:`${n} sure`,title:""}:{text:`at least ${n} sure`,title:c}}let r=Or(e),s=`${Z(Math.exp(so(r)/r.length))} per token`,i=`Product of ${r.length} token probabilities; on average ${s} (geometric mean)`;return t.kind==="token"?{text:`sampled, ${s} on average`,title:i}:{text:`probability ${n}, ${s}`,title:i}}function Nr(e){let{name:t,parameters:n}=e.model;if(!t||n===0||e.merges)return"";let o=a=>/^[\w./-]+$/.test(a)?a:`'${a.replaceAll("'","'\\''")}'`,r=[],s=e.search?.settings.beam_size;typeof s=="number"&&r.push(`--beam ${s}`);for(let a of["temperature","top_k","top_p"]){let l=e.sampling?.filters[a];l!=null&&r.push(`--${a.replace("_","-")} ${l}`)}let{against:i}=e;return i&&i.text!==e.text&&r.unshift(`--against ${o(i.text)}`),i&&i.model.sha256!==e.model.sha256&&r.unshift(`--against-model ${o(i.model.name||"MODEL")}`),["regard look",o(t),o(e.text),...r].join(" ")}function Mt(e,t){return t==null?!1:!((e==="temperature"||e==="repetition_penalty")&&t===1)}function Ur(e,t,n,o=[]){let r=Float64Array.from(e);for(let x of o)r[x]=-1/0;let s=1/0,i=x=>{Math.abs(x)<s&&(s=Math.abs(x))},a=[{name:"model",probabilities:Wt(r)}],l=x=>Mt(x,n[x])?n[x]:null,c=l("no_repeat_ngram");if(c!==null){for(let x of ya(t,c))r[x]=-1/0;a.push({name:"no_repeat_ngram",probabilities:Wt(r)})}let m=l("repetition_penalty");if(m!==null){for(let x of new Set(t))r[x]*=m;a.push({name:"repetition_penalty",probabilities:Wt(r)})}let u=l("temperature");if(u===0){let x=Ut(r);i(r[x[0]]-r[x[1]]);let L=new Float64Array(r.length);L[x[0]]=1;let $=["temperature","top_k","top_p","min_p","typical_p"].filter(M=>l(M)!==null);return{stages:[...a,...$.map(M=>({name:M,probabilities:L}))],margin:s}}u!==null&&(r=r.map(x=>x/u),a.push({name:"temperature",probabilities:Wt(r)}));let h=Wt(r),p=(x,L)=>{h=Gr(h.map(($,M)=>L(M)?$:0)),a.push({name:x,probabilities:h})},f=l("top_k");if(f!==null){let x=Ut(r);f<x.length&&i(r[x[f-1]]-r[x[f]]);let L=new Set(x.slice(0,f));p("top_k",$=>L.has($))}let g=l("top_p");if(g!==null){let x=Wr(Ut(h),h,g,i);p("top_p",L=>x.has(L))}let b=l("min_p");if(b!==null){let x=b*h.reduce((L,$)=>Math.max(L,$),0);h.forEach(L=>L>0&&i(L-x)),p("min_p",L=>h[L]>=x)}let w=l("typical_p");if(w!==null){let x=h.reduce((T,A)=>T-(A>0?A*Math.log(A):0),0),L=h.map(T=>Math.abs(-Math.log(T)-x)),$=Array.from(L.keys()).sort((T,A)=>L[T]-L[A]||T-A);for(let T=1;T<$.length;T++)h[$[T]]>0&&i(L[$[T]]-L[$[T-1]]);let M=Wr($,h,w,i);p("typical_p",T=>M.has(T))}return{stages:a,margin:s}}function ya(e,t){let n=e.slice(e.length-t+1),o=[];for(let r=0;r+t<=e.length;r++)n.slice(0,t-1).every((s,i)=>e[r+i]===s)&&o.push(e[r+t-1]);return o}function Wr(e,t,n,o){if(n>=1)return new Set(e);let r=new Set,s=0;for(let i of e){if(o(s-n),s>=n)break;r.add(i),s+=t[i]}return r}function Ut(e){return Array.from(e.keys()).sort((t,n)=>e[t]===e[n]?t-n:e[n]>e[t]?1:-1)}function Wt(e){let t=e.reduce((n,o)=>Math.max(n,o),-1/0);return Gr(e.map(n=>Math.exp(n-t)))}function Gr(e){let t=e.reduce((n,o)=>n+o,0);return e.map(n=>n/t)}var Ge=96,Gt=108,tt=24,xn=26;function yn(e,t){return{width:Ge+t*Gt+4,height:xn+e*tt+6}}function ao(e,t,n,o,r){let s=Math.max(1e-9,...t.flatMap(a=>a.values)),i=a=>a/s*(Gt-56);n.forEach((a,l)=>e.text(Ge+l*Gt,10,me(a,12,r.font,Gt-6),{fill:r.muted,size:12})),t.forEach((a,l)=>{let c=xn+l*tt+tt/2;a.isChosen&&e.rect(0,c-tt/2+1,o.width,tt-2,{fill:r.hue,opacity:.16,radius:4});let m=me(a.label,13,r.font,Ge-14);e.text(Ge-8,c,m,{fill:r.ink,weight:a.isChosen?700:400,anchor:"end"}),a.values.forEach((u,h)=>{let p=Ge+h*Gt;if(u===0){e.text(p,c,"removed",{fill:r.muted,size:11});return}let f=Math.max(1.5,i(u));e.rect(p,c-6,f,12,{fill:r.hue}),e.text(p+f+5,c,ie(u),{fill:r.ink,size:11})})})}function zr(e){return{width:360,height:xn+e*tt+6}}function jr(e,t,n,o,r){let s=Math.min(8,t.tokens.length),i=c=>t.probabilities[c]/t.times[c],a=c=>c/i(0)*(o.width-Ge-104),l={fill:r.muted,size:12};e.text(Ge,10,"probability / wait",l),e.text(o.width-52,10,"prob.",{...l,anchor:"end"}),e.text(o.width-2,10,"wait",{...l,anchor:"end"});for(let c=0;c<s;c++){let m=xn+c*tt+tt/2;e.text(Ge-8,m,me(n(t.tokens[c]),13,r.font,Ge-14),{fill:r.ink,anchor:"end",weight:c>0?400:700}),e.rect(Ge,m-6,Math.max(1.5,a(i(c))),12,{fill:r.hue,opacity:c>0?.5:1});let u={fill:r.ink,size:11,anchor:"end"};e.text(o.width-52,m,ie(t.probabilities[c]),u),e.text(o.width-2,m,ie(t.times[c]),u)}}var qr={no_repeat_ngram:{label:"no_repeat_ngram",min:1,max:6,step:1,start:3},repetition_penalty:{label:"repetition_penalty",min:.5,max:3,step:.05,start:1.2},temperature:{label:"temperature",min:0,max:2,step:.05,start:.8},top_k:{label:"top_k",min:1,max:100,step:1,start:20},top_p:{label:"top_p",min:.01,max:1,step:.01,start:.9},min_p:{label:"min_p",min:.01,max:1,step:.01,start:.1},typical_p:{label:"typical_p",min:.01,max:1,step:.01,start:.9}},ka={temperature:1,repetition_penalty:1},Kr={name:"sampling",title:"Sampling",applies:e=>(e.sampling?.steps.length??0)>0,mount:va};function va({doc:e,store:t,blobs:n,live:o}){let r=e.sampling,s=e.sequences.target??[],i=new ke(async D=>Be(await o.logits(Number(D))),()=>t.notify(),16),a=d("div",{class:"chips",role:"group","aria-label":"Generated tokens"}),l=d("p",{class:"fact"}),c=d("div",{class:"sliders"}),m=d("h3"),u=new ce("Probabilities after each filter",{role:"img",tabindex:null}),h=d("h3"),p=d("p",{class:"small"}),f=new ce("How the token was drawn",{role:"img",tabindex:null}),g=d("div",{class:"controls"}),b=d("p",{class:"readout",role:"status","aria-live":"polite"}),w=d("section",{class:"sampling","aria-label":"Sampling step"},d("h2",{},"How one token was sampled"),d("div",{class:"scroller"},a),l,b,d("div",{class:"columns"},d("div",{},d("h3",{},"Filters, in their order"),c),d("div",{class:"wide"},m,Vr("Distributions",u)),d("div",{},h,p,Vr("Draw",f),g))),x=null;S();let L=D=>r.filter_order.every(y=>{let[C,R]=[D.filters[y],r.filters[y]];return C===R||!Mt(y,C)&&!Mt(y,R)}),$=D=>e.vocabulary[D]?de(e.vocabulary[D]):`#${D}`;function M(D){let{state:y}=t;(D.has("step")||D.has("filters"))&&(x=null);let C=r.steps[Math.min(y.step,r.steps.length-1)];X(a,...r.steps.map(E)),(D.size===0||D.has("filters"))&&O(y);let R=C.logits?n.read(C.logits):o.available?i.read(String(C.position)):null;if(!R){b.textContent=R===null?"This file has no distribution of this step; a live page (regard look) has all.":"Reading the distribution …",l.textContent=`${K($(C.token))} was generated.`;return}let I=s.slice(0,C.position).map(N=>N.id),G=Ur(R.codes,I,y.filters,r.suppressed),P=L(y);l.textContent=H(C,G,P),b.textContent=P?"These are the recorded settings. Move a slider to see another distribution.":`Not the recorded settings: ${K($(C.token))} was sampled with ${Ma(r.filters)}.`,A(C,G),k(C,G,P)}function T(D,y){let C=Ut(y.stages[0].probabilities).slice(0,12);return C.includes(D.token)||(C[C.length-1]=D.token),C.map(R=>({label:$(R),values:y.stages.map(I=>I.probabilities[R]),isChosen:R===D.token}))}function A(D,y){let C=y.stages[y.stages.length-1].probabilities,R=T(D,y),I=C.reduce((j,V)=>j+ +(V>0),0),G=R.filter(j=>j.values[j.values.length-1]>0).length,P=G<I?`, ${G} of them shown`:"";m.textContent=`${I.toLocaleString("en")} of ${C.length.toLocaleString("en")} tokens are left${P}`;let N=y.stages.map(j=>j.name),z=yn(R.length,N.length);u.draw(z.width,z.height,(j,V)=>ao(j,R,N,z,V)),u.element.setAttribute("aria-label",`Probabilities after the filters: ${R.slice(0,5).map(j=>`${j.label} ${ie(j.values[j.values.length-1])}`).join(", ")}`)}function k(D,y,C){let R=y.stages[y.stages.length-1].probabilities,I=x??(C?D.race:null),G=()=>{x=La(R),t.notify()},P=v().filters.temperature===0;if(h.textContent=P?"No dice: greedy":x?"Another draw, not the recorded one":"How the dice fell",p.textContent=P?"At temperature 0 the most probable token is taken.":I?`Each token gets a random wait (exponential, mean 1); the largest probability / wait wins. ${$a(I.contenders)}`:"No token was drawn with these settings. Draw one:",f.element.hidden=!I||P,X(g,P?null:d("button",{type:"button",onclick:G},"Draw again"),x?d("button",{type:"button",onclick:()=>(x=null,t.notify())},"Recorded draw"):null,he(()=>`sampling.${D.position}`,()=>yn(T(D,y).length,y.stages.length),(z,j)=>{let V=T(D,y),_=y.stages.map(U=>U.name);ao(z,V,_,yn(V.length,_.length),j)})),!I||P)return;let N=zr(Math.min(8,I.tokens.length));f.draw(N.width,N.height,(z,j)=>jr(z,I,$,N,j)),f.element.setAttribute("aria-label",`The draw: ${$(I.tokens[0])} won`)}let v=()=>t.state;function E(D,y){return d("button",{type:"button","aria-pressed":String(y===t.state.step),onclick:()=>t.set({step:y})},$(D.token))}function S(){for(let y of r.filter_order){let C=qr[y];if(!C)continue;let R=j=>t.set({filters:{...t.state.filters,[y]:j}}),I=d("input",{type:"checkbox","aria-label":`${C.label} on`,onchange:()=>R(I.checked?C.start:ka[y]??null)}),{min:G,max:P,step:N}=C,z=d("input",{type:"range",min:G,max:P,step:N,id:`slider-${y}`,"data-name":y,oninput:()=>R(Number(z.value))});c.append(d("div",{class:"slider"},I,d("label",{for:`slider-${y}`},C.label),z,d("output",{})))}let D=()=>t.set({filters:{...r.filters}});c.append(d("button",{type:"button",onclick:D},"Recorded settings"))}function O(D){for(let y of c.querySelectorAll(".slider")){let C=y.querySelector("input[type=range]"),R=C.dataset.name,I=D.filters[R],G=Mt(R,I);y.querySelector("input[type=checkbox]").checked=G,C.value=String(I??qr[R].start),y.querySelector("output").textContent=G?String(Number(I.toFixed(3))):"off",y.classList.toggle("off",!G)}}function H(D,y,C){let R=y.stages[0].probabilities[D.token],I=y.stages[y.stages.length-1].probabilities[D.token],G=1+y.stages[0].probabilities.reduce((N,z)=>N+ +(z>R),0),P=`${K($(D.token))} was sampled: the model's choice number ${G}, probability ${ie(R)}`;return C?`${P}, after the filters ${ie(I)}.`:I>0?`${P}; with these settings ${ie(I)}.`:`${P}; with these settings it is impossible.`}return{element:w,update:M}}function $a(e){return e===1?"Only one token was left.":`${e.toLocaleString("en")} tokens took part.`}function Xr(e){let t=n=>n.logprob??0;return e.reduce((n,o,r)=>t(o)<t(e[n])?r:n,0)}function Vr(e,t){return d("div",{class:"scroller",tabindex:0,role:"group","aria-label":e},t.element)}function Ma(e){return Object.entries(e).filter(([n,o])=>Mt(n,o)).map(([n,o])=>`${n} ${o}`).join(", ")||"no filter"}function La(e){let t=Array.from(e.keys()).filter(o=>e[o]>0).map(o=>({token:o,probability:e[o],time:-Math.log(1-Math.random())||1e-12})).sort((o,r)=>r.probability/r.time-o.probability/o.time),n=t.slice(0,24);return{tokens:n.map(o=>o.token),probabilities:n.map(o=>o.probability),times:n.map(o=>o.time),contenders:t.length}}function Qr(e,t){let n=e.picture?e.attention.filter(a=>a.columns==="source"):e.attention,o=Ke(e,n),r=o?.group??e.attention.find(a=>a.name==="decoder.cross")??e.attention[0],[s,i]=(o&&Ta(e,o))??r?.default_head??[0,0];return{view:t,beat:null,group:r?.name??"encoder.self",layer:s,head:i,meanOfHeads:!1,query:null,drawing:"heatmap",statistic:"entropy",words:e.against!==void 0,specials:!0,numbers:r!==void 0&&r.row_count*r.column_count<=36,stretched:!1,hover:null,locked:null,candidate:null,pointed:null,unfolded:!1,hypothesis:0,alignment:"ribbons",alignedHeads:[],alignedTokens:!1,headsOff:[],method:"integrated_gradients",step:Xr(e.sampling?.steps??[]),filters:{...e.sampling?.filters??{}},merge:e.merges?.steps.length?1:0,mask:(e.masks.find(a=>a.terms.length>0)??e.masks[0])?.group??"decoder.self",hiddenTerms:[],present:!1,stack:e.positions[0]?.stack??"decoder",againstHead:null,compared:null}}function Ta({against:e,model:t},n){let o=e?.attention.find(({name:s})=>s===n.group.name);if(!e||!o||e.model.sha256!==t.sha256)return null;let r=Ke(e,[o]);return r&&Math.abs(r.delta)>Math.abs(n.delta)?r.place:n.place}function Sa(e,t){let{protocol:n,hostname:o}=new URL(e),r=e.replace(/#.*/s,"")+t;return n==="file:"?{text:r,note:`For this computer. To share it, send the file and ${t}, which goes after its name.`}:n.startsWith("http")?["127.0.0.1","localhost","[::1]"].includes(o)?{text:r,note:"For this computer, while the page is served. To share it, save the page (--save)."}:{text:r,note:""}:{text:t,note:"A frame has no address: add this to a saved page's."}}async function Ea(e){try{return await navigator.clipboard.writeText(e),!0}catch{let t=document.body.appendChild(d("textarea",{readonly:!0},e));t.select();let n=document.execCommand("copy");return t.remove(),n}}function Yr(e){let t=d("span",{class:"small",role:"status"}),n=d("button",{type:"button",onclick:()=>{o()}},"Copy link");async function o(){let{text:r,note:s}=Sa(location.href,e());if(await Ea(r))X(t,["Copied",s].filter(Boolean).join(". "));else{let i=d("input",{readonly:!0,"aria-label":"Link",value:r});X(t,"Copy it from here: ",i),i.select()}n.focus()}return{elements:[n,t],clear:()=>t.hasChildNodes()&&X(t)}}var Zr=`:root {
  color-scheme: light dark;
  --scheme: light;
  --page: #ffffff;
  --raised: #f4f5f7;
  --ink: #1b1e26;
  --muted: #5d6370;
  --rule: #d5d9e0;
  --accent: #b8420b;
  --hue: #2171b5;
  --minus: #8e2a9b;
  --tint: #1f9bff;
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --scheme: dark;
    --page: #14161b;
    --raised: #1f232b;
    --ink: #eceef2;
    --muted: #a3a9b6;
    --rule: #3a404b;
    --accent: #ff9457;
    --hue: #62aae2;
    --minus: #e38cf0;
  }
}
* {
  box-sizing: border-box;
}
[hidden] {
  display: none !important;
}
body {
  margin: 0;
  background: var(--page);
  color: var(--ink);
  font: 15px/1.5 var(--font);
}
header {
  display: flex;
  justify-content: space-between;
  gap: 8px 24px;
  padding: 18px 24px 14px;
  border-bottom: 1px solid var(--rule);
  overflow-wrap: anywhere;
}
main {
  padding: 0 24px 24px;
  max-width: 2400px;
}
h1 {
  font-size: 22px;
  line-height: 1.3;
  margin: 2px 0 4px;
}
header > div {
  min-width: 0;
}
header > div:first-child {
  flex: 1;
}
.tools {
  display: flex;
  flex-flow: row-reverse wrap;
  gap: 6px 10px;
  align-self: flex-start;
  align-items: center;
  flex: 0 1 auto;
}
.tools > .small {
  max-width: 36ch;
}
.tools button {
  white-space: nowrap;
}
.tools .small input {
  width: 20ch;
}
.sure {
  font-weight: 400;
  color: var(--muted);
  font-size: 0.82em;
  margin-left: 0.4em;
}
.box {
  margin-bottom: 12px;
}
.box .row {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 12px;
  margin-bottom: 6px;
}
.box textarea {
  flex: 1 1 320px;
  min-width: 0;
  max-width: 1000px;
  font: inherit;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--muted);
  border-radius: 6px;
  padding: 5px 10px;
  resize: vertical;
}
.box .controls {
  margin: 0;
}
button.main {
  background: var(--ink);
  border-color: var(--ink);
  color: var(--page);
}
button[aria-disabled="true"] {
  opacity: 0.6;
}
.problem:empty {
  display: none;
}
.problem {
  margin-top: 4px;
  font-weight: 600;
}
h2 {
  font-size: 18px;
  margin: 0;
}
h3 {
  font-size: 14px;
  margin: 0 0 2px;
}
p {
  margin: 0;
}
.small {
  font-size: 13px;
  color: var(--muted);
  font-weight: 400;
}
.note {
  max-width: 900px;
  margin-top: 4px;
}
button,
select,
input {
  font: inherit;
  color: inherit;
}
button {
  background: none;
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 3px 12px;
  cursor: pointer;
}
button:hover {
  border-color: var(--muted);
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}
input[type="checkbox"] {
  width: 17px;
  height: 17px;
}
@media (pointer: coarse) {
  input[type="checkbox"] {
    width: 24px;
    height: 24px;
  }
  .controls button,
  .control {
    min-height: 36px;
  }
}
select {
  max-width: 100%;
  min-width: 0;
  background: var(--page);
  border: 1px solid var(--rule);
  border-radius: 6px;
  padding: 3px 8px;
}
.card {
  border: 1px solid var(--rule);
  border-radius: 8px;
  padding: 12px 16px;
  margin-top: 14px;
  max-width: 760px;
  overflow-wrap: anywhere;
}
.card p + p {
  margin-top: 6px;
}
.card dl {
  display: grid;
  grid-template-columns: max-content 1fr;
  gap: 2px 16px;
  margin: 8px 0;
}
.card dt {
  color: var(--muted);
}
.card dd {
  margin: 0;
}
.card mark {
  background: var(--raised);
  color: inherit;
  font-weight: 600;
}
.legend {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 18px;
  margin: 8px 0;
}
.legend span {
  display: inline-flex;
  align-items: center;
  gap: 7px;
}
.legend i {
  width: 22px;
  height: 13px;
  border: 1.5px solid var(--hue);
  border-radius: 3px;
}
.legend .winner {
  border: 3px solid var(--hue);
}
.legend .finished {
  border-radius: 7px;
}
.legend .plus {
  border: 0;
  background: color-mix(in srgb, var(--hue) 60%, var(--page));
}
.legend .minus {
  border: 0;
  background: color-mix(in srgb, var(--minus) 60%, var(--page));
}
.legend .dropped {
  border: 1px dashed var(--muted);
}
.compare h3 {
  margin-top: 14px;
}
.compare .card h3 {
  margin-top: 0;
}
.facts {
  margin: 4px 0 12px;
  padding-left: 20px;
  max-width: 900px;
}
.sides {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr));
  gap: 12px;
}
.sides .card {
  margin: 0;
  max-width: none;
}
.words {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 10px;
  font-size: 17px;
}
.words > span {
  min-width: 0;
}
.words .small {
  display: block;
  line-height: 1.2;
}
.sides mark {
  background: none;
  color: inherit;
  font-weight: 600;
  text-decoration: underline 2px;
  text-underline-offset: 3px;
}
.next {
  width: 100%;
  max-width: 760px;
  border-collapse: collapse;
  table-layout: fixed;
}
.next th {
  text-align: left;
  font-weight: 400;
  overflow-wrap: anywhere;
}
.next thead th {
  color: var(--muted);
  font-size: 13px;
}
.next .bar {
  display: inline-block;
  height: 11px;
  background: var(--hue);
  margin-right: 7px;
}
.maps {
  display: grid;
  grid-template-columns: repeat(3, minmax(0, 1fr));
  gap: 0 24px;
}
@media (max-width: 880px) {
  .maps {
    grid-template-columns: minmax(0, 1fr);
  }
}
.head-grid {
  display: inline-grid;
  gap: 3px;
  align-items: center;
  margin: 4px 0 12px;
}
.head-grid button {
  padding: 0;
  width: 30px;
  height: 26px;
  font-size: 13px;
  border-radius: 4px;
}
.head-grid button[aria-pressed="true"] {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--page);
}
.head-grid span {
  text-align: right;
  padding-right: 5px;
}
.grids {
  display: flex;
  flex-wrap: wrap;
  gap: 18px 40px;
}
.grids .group {
  min-width: 0;
  max-width: 100%;
}
.grids .stage {
  cursor: pointer;
}
.chips {
  display: flex;
  gap: 4px;
  padding-bottom: 6px;
}
.chips button {
  padding: 2px 8px;
  white-space: nowrap;
}
.chips canvas {
  display: block;
  margin: 4px auto;
}
.chips button[aria-pressed="true"] {
  background: var(--accent);
  border-color: var(--accent);
  color: var(--page);
}
.columns {
  display: flex;
  flex-wrap: wrap;
  gap: 18px 40px;
  margin-top: 14px;
}
.sampling .columns > div:last-child {
  width: 368px;
}
.columns > div {
  min-width: 0;
  max-width: 100%;
}
.sliders {
  display: grid;
  gap: 7px;
  margin-top: 6px;
  justify-items: start;
}
.slider {
  display: grid;
  grid-template-columns: 18px 142px 120px 44px;
  gap: 6px;
  align-items: center;
}
.slider input {
  margin: 0;
  width: 100%;
  accent-color: var(--hue);
}
.slider.off label,
.slider output {
  color: var(--muted);
}
.slider.off input[type="range"] {
  opacity: 0.35;
}
.columns .stage {
  cursor: default;
}
.cards {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr));
  gap: 12px;
}
.cards .card {
  margin: 0;
  max-width: none;
}
.cards .card:only-child {
  grid-column: 1 / -1;
}
.cards dd {
  display: flex;
  align-items: center;
}
.card .bar {
  display: inline-block;
  height: 11px;
  background: var(--hue);
  margin-right: 7px;
}
button:disabled {
  opacity: 0.4;
  cursor: default;
}
footer {
  margin-top: 28px;
  border-top: 1px solid var(--rule);
  padding-top: 10px;
  overflow-wrap: anywhere;
}
/* A slide: the page is laid out small and enlarged, see present.ts. */
.present header,
.present #panel {
  zoom: var(--zoom);
}
.present header {
  padding: 6px 14px 2px;
  border: 0;
}
.present main {
  padding: 0;
}
.present #panel {
  padding: 0 14px;
}
.present .tabs {
  zoom: calc(var(--zoom) * 0.75);
  margin: 0 18px 4px;
}
.present h1 {
  font-size: 18px;
  margin: 0;
}
.present h2 {
  font-size: 16px;
}
.present .fact {
  font-size: 13px;
  margin: 0 0 4px;
}
.present header > div:first-child {
  display: flex;
  flex-wrap: wrap;
  align-items: baseline;
  gap: 0 16px;
}
.present .input[hidden] {
  display: block !important; /* a live page has its input in a box, which a slide does not need */
}
.present .stage {
  margin: 0 auto;
}
.present .columns {
  margin-top: 4px;
}
.present .columns .stage {
  margin: 0;
}
.present .readout {
  min-height: 0;
  padding: 3px 10px;
  margin-bottom: 4px;
  font-size: 13px;
}
.present .heads {
  grid-template-columns: minmax(0, 1fr);
}
.present header .small,
.present .tools > :not(.presenter),
.present .note,
.present .box,
.present .saves,
.present .overview,
.present .key,
.present .legend,
.present .slide-hidden,
.present #more-views,
.present .chips canvas,
.present .beam > .fact,
.present .sampling > .readout,
.present #panel p.small,
.present .detail > .controls,
.present .beam > .controls,
.present .alignment > .controls,
.present footer {
  display: none;
}
.present .presenter {
  position: absolute;
  top: 4px;
  right: 8px;
  border: 0;
  padding: 0 6px;
  opacity: 0.6;
}
@media (max-width: 760px) {
  header {
    padding: 12px 14px 10px;
  }
  main {
    padding: 0 14px 18px;
  }
  h1 {
    font-size: 18px;
  }
  header {
    flex-direction: column;
  }
  .tools {
    flex-direction: row;
  }
}
.switches {
  display: inline-grid;
  grid-template-columns: auto repeat(var(--heads), minmax(14px, max(84px, 6vw)));
  gap: 4px;
  align-items: center;
  width: 100%;
}
.switches > span {
  text-align: center;
  white-space: nowrap;
}
.switch {
  display: flex;
  align-items: center;
  justify-content: space-between;
  gap: 4px;
  min-width: 0;
  min-height: 40px;
  padding: 2px 8px;
  background: var(--effect);
  border: 1px solid var(--rule);
  border-radius: 8px;
  color: var(--ink);
  font-size: 14px;
  font-variant-numeric: tabular-nums;
  overflow: hidden;
}
.switch i {
  flex: none;
  width: 20px;
  height: 12px;
  border-radius: 6px;
  border: 1.5px solid var(--ink);
  background: radial-gradient(circle at calc(100% - 4.5px) 50%, var(--ink) 3px, transparent 3.6px);
}
.switch[aria-checked="false"] {
  outline: 3px solid var(--accent);
  outline-offset: -2px;
  background: var(--page);
}
.switch[aria-checked="false"] i {
  border-color: var(--accent);
  background: radial-gradient(circle at 4.5px 50%, var(--accent) 3px, transparent 3.6px);
}
.switches.dense .switch {
  min-height: 26px;
  padding: 0;
  border-radius: 4px;
}
.switches.dense .switch i,
.switches.dense .switch > span {
  display: none;
}
.break .grids {
  gap: 12px 32px;
}
.break .readout {
  margin-top: 12px;
}
.break .controls button:disabled {
  color: var(--muted);
  opacity: 0.6;
}
.result {
  position: sticky;
  bottom: 8px;
  max-width: 980px;
  max-height: 40vh;
  overflow: auto;
  background: var(--page);
}
@media (max-width: 760px) {
  /* Above the switches, where it covers none of the last. */
  .break {
    display: flex;
    flex-direction: column;
  }
  .break .grids,
  .break .readout,
  .break .result ~ * {
    order: 1;
  }
  .result {
    top: 0;
    bottom: auto;
    width: 100%;
    margin: 0 0 12px;
    padding: 8px 12px;
    min-height: 120px;
    max-height: 34vh;
    z-index: 1;
  }
  .switch {
    scroll-margin-top: 36vh;
  }
}
.present .result {
  position: static;
  max-height: none;
  margin-top: 0;
  padding: 6px 12px;
}
.present .break .grids {
  flex-wrap: nowrap;
  gap: 8px 20px;
}
.present .break .group {
  flex: 1 1 0;
  max-width: 420px;
}
.present .break .switches {
  grid-template-columns: auto repeat(var(--heads), minmax(0, 1fr));
  gap: 3px;
}
.present .switch {
  min-height: 26px;
  padding: 0 3px;
  font-size: 12px;
}
.present .switch i {
  width: 15px;
  height: 10px;
}
.present .break .readout {
  margin-top: 6px;
}
.present .break .controls {
  margin-bottom: 4px;
  font-size: 13px;
}
.present .result p + p {
  margin-top: 2px;
}
.result .retyped {
  font-size: 1.35em;
  line-height: 1.5;
  white-space: pre-wrap;
}
.result del {
  color: var(--muted);
  text-decoration: line-through 2px;
}
.result ins {
  color: var(--minus);
  font-weight: 600;
  text-decoration: none;
}
.result .effect {
  font-weight: 600;
}
.result .word {
  display: inline-block;
  margin: 2px 3px 0 0;
  padding: 1px 5px;
  border-radius: 4px;
}
@media (prefers-reduced-motion: no-preference) {
  .result ins {
    animation: retype 0.5s;
  }
  @keyframes retype {
    from {
      opacity: 0;
    }
  }
}
`;var Jr=`/* The tabs, the story and the heads: what the page of \`regard look\` and that of an exported model have in common. */
.saves {
  display: inline-flex;
}
.saves button {
  margin-left: -1px;
  border-radius: 0 6px 6px 0;
}
.saves button:first-child {
  margin: 0;
  border-radius: 6px 0 0 6px;
}
.fact {
  font-size: 15px;
  margin: 2px 0 10px;
}
.tabs {
  display: flex;
  gap: 4px;
  margin: 0 0 18px;
  border-bottom: 1px solid var(--rule);
  flex-wrap: wrap;
}
.tabs button {
  border: 0;
  border-bottom: 3px solid transparent;
  border-radius: 0;
  padding: 10px 12px 7px;
  color: var(--muted);
  white-space: nowrap;
}
.tabs button:focus-visible {
  outline-offset: -2px;
}
.tabs button[aria-selected="true"] {
  color: var(--ink);
  border-bottom-color: var(--accent);
  font-weight: 600;
}
#tab-more::after {
  content: " ▾";
}
.tabs + #more-views {
  margin-top: -18px; /* the two rows touch */
  font-size: 14px;
}
.choice {
  display: inline-flex;
}
.choice button {
  border-radius: 0;
  margin-left: -1px;
}
.choice button:first-child {
  border-radius: 6px 0 0 6px;
  margin: 0;
}
.choice button:last-child {
  border-radius: 0 6px 6px 0;
}
.choice button[aria-pressed="true"] {
  background: var(--ink);
  color: var(--page);
  border-color: var(--ink);
}
.controls {
  display: flex;
  flex-wrap: wrap;
  gap: 8px 18px;
  align-items: center;
  margin-bottom: 12px;
}
.control {
  max-width: 100%;
  display: inline-flex;
  gap: 7px;
  align-items: center;
}
.control input {
  accent-color: var(--hue);
  margin: 0;
}
.scroller {
  overflow-x: auto;
  padding: 2px;
}
.stage {
  position: relative;
  touch-action: pan-x pan-y;
  cursor: crosshair;
  max-width: none;
}
.stage:focus-visible {
  outline-offset: -2px;
} /* a scroller would cut it off */
.stage canvas {
  position: absolute;
  inset: 0;
  display: block;
}
.overlay {
  pointer-events: none;
}
.heads {
  display: grid;
  grid-template-columns: minmax(200px, 300px) minmax(0, 1fr);
  gap: 36px;
  align-items: start;
}
.overview {
  min-width: 0;
  display: grid;
  gap: 14px;
}
.overview .stage,
.beam .stage {
  cursor: pointer;
}
.overview h2 {
  font-size: 14px;
  margin-bottom: 2px;
}
.overview h2 span {
  display: block;
  line-height: 1.2;
}
.detail {
  min-width: 0;
}
.stage-row {
  display: flex;
  gap: 16px;
  align-items: flex-start;
}
.stage-row .scroller {
  min-width: 0;
}
.lens {
  flex: none;
}
.readout {
  background: var(--raised);
  border-radius: 6px;
  padding: 9px 13px;
  min-height: 63px; /* two lines: a longer sentence does not move what is below */
  margin-bottom: 10px;
  overflow-wrap: anywhere;
}
.key {
  display: flex;
  gap: 12px;
  align-items: center;
  margin: 10px 0 6px;
  flex-wrap: wrap;
}
.stage svg {
  position: absolute;
  inset: 0;
  display: block;
}
.story .caption {
  font-size: 19px;
  min-height: 3em;
  margin: 0 0 8px;
}
.story .stage {
  cursor: default;
}
.telling,
.aside {
  min-width: 0;
}
@media (min-width: 1500px) {
  :root:not(.present) .story {
    display: grid;
    grid-template-columns: minmax(0, 1fr) minmax(0, 560px);
    gap: 0 40px;
  }
}
@media (min-width: 1180px) and (max-width: 1499px) {
  :root:not(.present) .small-picture {
    display: grid;
    grid-template-columns: minmax(0, 1fr) 340px;
    gap: 0 32px;
  }
  .small-picture .strip {
    gap: 5px;
  }
  .small-picture .strip > button,
  .small-picture .strip > div {
    min-width: 88px;
    padding: 6px 8px;
  }
}
.story > :not(.telling, .aside) {
  grid-column: 1 / -1;
}
.aside .strip:first-child {
  margin-top: 12px;
}
.player {
  display: flex;
  gap: 6px;
}
.player button,
.story .choice button {
  min-width: 44px;
  min-height: 44px;
}
.player .play {
  min-width: 88px;
  background: var(--ink);
  color: var(--page);
}
.strip {
  display: flex;
  flex-wrap: wrap;
  gap: 8px;
  align-items: center;
  margin: 16px 0 22px;
}
.strip > button,
.strip > div {
  display: grid;
  border: 1px solid var(--rule);
  border-radius: 8px;
  padding: 6px 16px;
  min-width: 96px;
  min-height: 44px;
  text-align: center;
  line-height: 1.35;
}
.findings {
  list-style: none;
  margin: 8px 0 16px;
  padding: 0;
  display: grid;
  gap: 8px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 700px), 1fr));
}
.findings li {
  display: flex;
  flex-wrap: wrap;
  gap: 6px 10px;
  align-items: center;
  padding: 8px 14px;
  border-left: 3px solid var(--hue);
  background: var(--raised);
  border-radius: 0 6px 6px 0;
  overflow-wrap: anywhere;
}
.findings span {
  flex: 1 1 300px;
  min-width: 0;
}
.transcript {
  margin-bottom: 12px;
  overflow-wrap: anywhere;
}
.transcript summary {
  cursor: pointer;
  min-height: 44px;
  line-height: 44px;
}
@media (max-width: 760px) {
  .tabs {
    gap: 0;
  }
  .tabs button {
    padding: 10px 9px 7px;
  }
  .heads {
    grid-template-columns: minmax(0, 1fr);
    gap: 18px;
  }
  .heads .detail {
    order: -1;
  } /* the map first: it opens at the most telling head */
  .readout {
    min-height: 108px;
  }
}
`;function ts(e,t){let n=e.filter(c=>c.level===2),o=n.length>1&&n.length<e.length,r=n[0]?.name??"",s=({name:c,title:m})=>({id:c,title:m,open:()=>t(c)}),i={id:"more",title:"More",open:()=>t(r)},a=es("Views","panel",o?[...e.filter(c=>c.level!==2).map(s),i]:e.map(s)),l=es("More views","panel",o?n.map(s):[]);return l.element.id="more-views",a.button("more")?.setAttribute("aria-controls","more-views"),{elements:[a.element,l.element],mark(c){let m=o&&n.some(u=>u.name===c);m&&(r=c),l.element.hidden=!m,a.mark(m?"more":c),l.mark(c)}}}function es(e,t,n){let o=n.map(({id:s,title:i,open:a})=>d("button",{type:"button",role:"tab",id:`tab-${s}`,"aria-controls":t,onclick:a},i)),r=d("div",{class:"tabs",role:"tablist","aria-label":e},...o);return r.addEventListener("keydown",s=>{let i=o.indexOf(s.target),a=n.length-1,c={ArrowLeft:i>0?i-1:a,ArrowRight:i<a?i+1:0,Home:0,End:a}[s.key];i<0||c===void 0||(s.preventDefault(),n[c].open(),o[c].focus())}),{element:r,button:s=>o[n.findIndex(i=>i.id===s)],mark:s=>n.forEach((i,a)=>{o[a].setAttribute("aria-selected",String(i.id===s)),o[a].tabIndex=i.id===s?0:-1,i.id===s&&(r.scrollLeft=o[a].offsetLeft-r.offsetLeft-40)})}}function Lt([e,t],[n,o]){let r=(e+n)/2;return`M${e},${t}C${r},${t},${r},${o},${n},${o}`}function kn([e,t],[n,o]){let r=(t+o)/2;return`M${e},${t}C${e},${r},${n},${r},${n},${o}`}var lo=16,co=18,vn=170,Ra=.75;function rs(e,t,n){let o=u=>Math.min(160,Math.max(14,be(u,lo,n.font))),r=u=>{let h=u.map(o),p=Math.min(t,1500)-h.reduce((b,w)=>b+w,20),f=Math.max(co,Math.min(180,p/Math.max(1,u.length-1))),g=8;return h.map(b=>(g+=b+f,[g-f-b/2,b+f-co]))},s=u=>u.length?u[u.length-1][0]+u[u.length-1][1]/2:0,[i,a]=[r(e.rows.map(u=>u.label)),r(e.columns.map(u=>u.label))],l=Math.max(s(i),s(a))+12;if(l<=t){let u=h=>h.map(([p,f])=>[p+(l-s(h)-12)/2,f]);return{upright:!0,rows:u(i),columns:u(a),width:l,height:vn+60}}let c=30,m=u=>Array.from({length:u},(h,p)=>[18+p*c,20]);return{upright:!1,rows:m(e.rows.length),columns:m(e.columns.length),width:Math.min(t,640),height:24+c*Math.max(e.rows.length,e.columns.length)}}function uo(e,t,n,o,r){let s=Math.min(130,n.width*.3),i=m=>n.upright?[n.columns[m][0],38]:[s,n.columns[m][0]],a=m=>n.upright?[n.rows[m][0],vn+22]:[n.width-s,n.rows[m][0]],l=(m,u)=>{for(let{column:h,weight:p}of ns(t,m)){let f=(n.upright?kn:Lt)(i(h),a(m));e.path(f,{stroke:u,width:1+13*p,opacity:.2+.6*p})}};t.rows.forEach((m,u)=>u!==r&&l(u,r===null?o.hue:o.rule)),r!==null&&l(r,o.accent);let c=new Set(r===null?[]:ns(t,r).map(m=>m.column));t.columns.forEach((m,u)=>{let[h,p]=n.upright?[n.columns[u][0],24]:[s-8,n.columns[u][0]],f=c.has(u)?o.accent:o.ink;os(e,o,m.label,h,p,f,n.upright?"middle":"end",n.upright?160:s-10)}),t.rows.forEach((m,u)=>{let[h,p]=n.upright?[n.rows[u][0],vn+38]:[n.width-s+8,n.rows[u][0]],f=u===r?o.accent:o.ink;os(e,o,m.label,h,p,f,n.upright?"middle":"start",n.upright?160:s-10)})}function ns(e,t){let n=0;return We(e,t,6).filter(({weight:o})=>{let r=o>=.03&&n<Ra;return n+=o,r})}function ss(e,t,n){if(!(e.upright?n>vn*.5:t>e.width*.5))return null;let r=e.upright?t:n,s=e.rows.findIndex(([i,a])=>Math.abs(r-i)<=a/2+co/2);return s<0?null:s}function os(e,t,n,o,r,s,i,a){e.text(o,r,me(n,lo,t.font,a),{fill:s,size:lo,anchor:i})}var is=200,as={name:"alignment",title:"Alignment",level:2,applies:e=>e.hypotheses.length>0&&(e.sequences.source?.length??0)>0,mount:Da};function Da({doc:e,store:t,blobs:n}){let o=d("p",{class:"fact"}),r=d("div",{class:"controls"}),s=d("div",{class:"slide-hidden"}),i=new ce("Alignment. Arrow keys move along the generated words, Enter pins, Escape releases."),a=d("p",{class:"readout",role:"status","aria-live":"polite"}),l=d("p",{class:"small"}),c=d("section",{class:"alignment","aria-label":"Alignment"},d("h2",{},"Which source words each word comes from"),o,r,a,d("div",{class:"scroller"},i.element),s,l),m=null,u=null,h=null,p=()=>t.state.locked??t.state.hover,f=$=>{let{x:M,y:T}=i.locate($);if(!m)return null;if(t.state.alignment==="matrix")return h&&Ue(m,h,M,T);let A=u&&ss(u,M,T);return A===null?null:{row:A,column:null}};i.element.addEventListener("pointermove",$=>{let[M,T]=[f($),t.state.hover];(M?.row!==T?.row||M?.column!==T?.column)&&t.set({hover:M})}),i.element.addEventListener("pointerleave",()=>t.set({hover:null})),i.element.addEventListener("click",$=>{let M=f($);t.set({locked:M&&M.row===t.state.locked?.row?null:M})}),i.element.addEventListener("keydown",$=>{if(!m?.rows.length)return;if($.key==="Escape")return t.set({locked:null});let M={ArrowLeft:-1,ArrowUp:-1,ArrowRight:1,ArrowDown:1,Enter:0}[$.key];if(M===void 0)return;$.preventDefault();let T=p()===null?0:Math.max(0,Math.min(m.rows.length-1,p().row+M));t.set({locked:{row:T,column:null},hover:null})});function g($){let{state:M}=t,T=e.hypotheses[M.hypothesis]??e.hypotheses[0],A=$.size>0&&[...$].every(E=>E==="hover"||E==="locked"),k=n.read(T.cross);if(!A){let E=Pa(M,T,k);o.textContent=Fa(E,M),X(r,...x(T)),X(s,k?L(k,E):null),m=k?w(T,k,E,M):null,l.textContent="Attention is not an explanation by itself: it shows where the decoder attended, not why. Special tokens are left out."+(M.alignment==="ribbons"?" A word shows its strongest weights until they cover 75 %; weights below 0.03 are left out.":"")}if(!m){a.textContent="Reading the attention …";return}b(m,A);let v=Fe(p(),m);a.textContent=v?Ha(m,v):Ee("a generated word","to see where it comes from")}function b($,M){let T=ae(),{state:A}=t,k=Math.max(260,c.clientWidth),v=Fe(p(),$);if(A.alignment==="ribbons"){u=rs($,k-6,T),i.draw(u.width,u.height,E=>uo(E,$,u,T,v?.row??null)),i.drawOverlay(u.width,u.height,()=>{});return}h=He($,k,T,Xe(i.element,44*$.rows.length)),M||i.draw(h.width,h.height,E=>Ae(E,$,h,T)),i.drawOverlay(h.width,h.height,E=>{v&&Ze(E,$,h,T,v,A.locked!==null)})}function w($,M,T,A){let[,k,v,E]=M.shape,S=M.codes,O=new Float32Array(v*E);for(let[D,y]of T){let C=(D*k+y)*v*E;for(let R=0;R<O.length;R++)O[R]+=Ie[S[C+R]]/T.length}let H=!A.alignedTokens;return qe(Uint8Array.from(O,ft),E,fe($.tokens.slice(0,v),H,!1),fe(e.sequences.source.slice(0,E),H,!1))}function x($){let{state:M}=t,T={hover:null,locked:null},A=e.hypotheses.map((k,v)=>[String(v),`${v+1}. ${Y(k.text,60)} (${k.score.toFixed(2)})`]);return[Te("Drawing",[["ribbons","Ribbons"],["matrix","Matrix"]],M.alignment,k=>t.set({alignment:k,...T})),Me("Tokens instead of words",M.alignedTokens,k=>t.set({alignedTokens:k,...T})),A.length>1?Se("Hypothesis",A,String(M.hypothesis),k=>t.set({hypothesis:Number(k),...T})):null,he(()=>`alignment.${e.hypotheses.indexOf($)}`,()=>M.alignment==="ribbons"?u:h,(k,v)=>{m&&(M.alignment==="ribbons"?uo(k,m,u,v,p()?.row??null):Ae(k,m,h,v))})]}function L($,M){let[T,A]=$.shape,k=new Set(M.map(([H,D])=>`${H}.${D}`)),v=H=>t.set({alignedHeads:H}),E=d("div",{class:"head-grid",role:"group","aria-label":"Average of these heads"});if(E.style.gridTemplateColumns=`auto repeat(${Math.min(A,is)}, 30px)`,T*A<=is)for(let H=0;H<T;H++){E.append(d("span",{class:"small"},`layer ${H+1}`));for(let D=0;D<A;D++){let y=`${H}.${D}`,C=()=>{let I=k.has(y)?[...k].filter(G=>G!==y):[...k,y];v(I)},R={"aria-pressed":String(k.has(y)),"aria-label":`Layer ${H+1}, head ${D+1}`,onclick:C};E.append(d("button",{type:"button",...R},String(D+1)))}}let S=Array.from({length:T*A},(H,D)=>`${Math.floor(D/A)}.${D%A}`),O=d("div",{class:"controls"},d("button",{type:"button",onclick:()=>v([])},"Heads that align best"),d("button",{type:"button",onclick:()=>v(S)},"All heads"));return d("div",{},d("h3",{},"Average of these heads"),d("div",{class:"scroller"},E),O)}return{element:c,update:g}}function Pa(e,t,n){if(!n)return[];let[o,r]=n.shape,s=e.alignedHeads.map(i=>i.split(".").map(Number)).filter(([i,a])=>i<o&&a<r);return s.length?s:t.link_heads}function Fa(e,t){let n=e.map(([r,s])=>`layer ${r+1}, head ${s+1}`),o=t.alignedHeads.length===0;return e.length===1?o?`The head that aligns best: ${n[0]}.`:`One head: ${n[0]}.`:o?`Average of the ${e.length} heads that align best: ${n.join("; ")}.`:`Average of ${e.length} chosen heads.`}function Ha(e,t){let n=We(e,t.row,3).filter(s=>s.weight>=.02).map(s=>`${K(e.columns[s.column].label)} ${ie(s.weight)}`),o=e.hidden(t.row),r=o>=.01?` Special tokens hold ${ie(o)}.`:"";return`Generating ${K(e.rows[t.row].label)}, the decoder attends to ${n.join(", ")||"no word in particular"}.${r}`}var ls={occlusion:{title:"Occlusion",says:"Change of the logit if the token is there, against the mean embedding in its place."},gradient_x_input:{title:"Gradient × input",says:"Gradient of the logit times the embedding's distance from the mean embedding."},integrated_gradients:{title:"Integrated gradients",says:"The same gradient, averaged on the way from the mean embedding: the numbers of a row sum to the difference of the logits."}},ms={name:"attribution",title:"Attribution",level:2,applies:e=>(e.attribution?.outputs.length??0)>0,mount:_a};function _a({doc:e,store:t,blobs:n}){let o=e.attribution,r=d("p",{class:"fact"}),s=d("div",{class:"controls"}),i=d("p",{class:"readout",role:"status","aria-live":"polite"}),a=new ce("Contributions of input tokens to outputs. Arrow keys move, Escape releases."),l=d("p",{class:"small"}),c=d("section",{class:"attribution","aria-label":"Attribution"},d("h2",{},"What each input token contributed"),r,s,i,d("div",{class:"scroller"},a.element),d("div",{class:"legend small"},d("span",{},d("i",{class:"plus"}),"makes the output likelier"),d("span",{},d("i",{class:"minus"}),"makes it less likely"),d("span",{},"rows: outputs; columns: what the model read; numbers: change of the logit")),l),m=null,u=null,h=()=>t.state.locked??t.state.hover,p=g=>{let{x:b,y:w}=a.locate(g);return m&&u&&Ue(m,u,b,w)};a.element.addEventListener("pointermove",g=>{let[b,w]=[p(g),t.state.hover];(b?.row!==w?.row||b?.column!==w?.column)&&t.set({hover:b})}),a.element.addEventListener("pointerleave",()=>t.set({hover:null})),a.element.addEventListener("click",g=>t.set({locked:t.state.locked?null:p(g)})),a.element.addEventListener("keydown",g=>{if(g.key==="Escape")return t.set({locked:null});let w={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[g.key];if(!w||!m)return;g.preventDefault();let x=(M,T)=>Math.max(0,Math.min(T-1,M)),L=h()??{row:-w[0],column:-w[1]},$={row:x(L.row+w[0],m.rows.length),column:x((L.column??0)+w[1],m.columns.length)};t.set({locked:$,hover:null})});function f(g){let{state:b}=t,w=ae(),x=o.methods[b.method]?b.method:Object.keys(o.methods)[0],L=Object.keys(o.methods).map(k=>[k,ls[k]?.title??k]);X(s,Te("Method",L,x,k=>t.set({method:k})),he(()=>`attribution.${x}`,()=>u,k=>m&&cs(k,m,u,w,null)));let $=n.read(o.methods[x]);if(!$){i.textContent="Reading the numbers …";return}m=Oa(e,o,$.codes),u=He(m,Math.max(260,c.clientWidth-6),w,Xe(a.element));let M=Fe(h(),m);a.describe(u.left,u.top,u.cell),a.draw(u.width,u.height,k=>cs(k,m,u,w,M)),a.drawOverlay(u.width,u.height,()=>{});let T=[ls[x]?.says,x==="integrated_gradients"&&Wa(o)],A="Special tokens are the same in the input and in the baseline, so their columns are empty.";l.textContent=[...T,m.columns.some(k=>k.special)&&A].filter(Boolean).join(" "),r.textContent=Ba(m),i.textContent=M?Na(m,o,M):Ee("a cell","to read a contribution")}return{element:c,update:f}}function Oa(e,t,n){let o=c=>rt(c).map((m,u)=>({label:m,special:c[u].role==="special",members:[u]})),r=o((e.sequences.source??[]).slice(0,t.source_columns)),s=o((e.sequences.target??[]).slice(0,t.target_columns)),i=o(e.sequences.target??e.sequences.source??[]),a=t.outputs.map(c=>c===null?{label:"label",special:!1,members:[]}:i[c]),l=n.reduce((c,m)=>Math.max(c,Math.abs(m)),1e-9);return{rows:a,columns:[...r,...s],values:n,largest:l,sourceColumns:r.length}}function cs(e,t,n,o,r){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],m=new Uint32Array(l*c);for(let h=0;h<m.length;h++){let p=t.values[h];m[h]=Qe(o.page,p<0?o.minus:o.hue,Ia(Math.abs(p)/t.largest))}if(e.pixels(i,a,c*s,l*s,{width:c,height:l,data:m}),e.rect(i-.5,a-.5,c*s+1,l*s+1,{stroke:o.rule}),t.sourceColumns>0&&t.sourceColumns<c&&e.path(`M${i+t.sourceColumns*s} ${a-8}V${a+l*s}`,{stroke:o.ink,width:2}),Ot(e,t,n,o,r),!r)return;let u=a+r.row*s;if(e.rect(i,u,c*s,s,{stroke:o.accent,width:1.5}),r.column!==null&&e.rect(i+r.column*s,u,s,s,{stroke:o.accent,width:2.5}),!(s<30))for(let h=0;h<c;h++){let p=t.values[r.row*c+h];if(Math.abs(p)<.05)continue;let f=p.toFixed(1).replace("-","−");e.text(i+(h+.5)*s,u+s/2,f,{fill:o.ink,size:11,anchor:"middle"})}}function Ia(e){return e<.002?0:.12+.73*Math.sqrt(e)}function Ba(e){let t=e.columns.length,n=e.sourceColumns||t,o=null;if(e.rows.forEach((l,c)=>{for(let m=0;m<n;m++){let u=e.values[c*t+m];!l.special&&u>(o?.value??0)&&(o={row:c,column:m,value:u})}}),o===null)return"";let{row:r,column:s,value:i}=o;return`The ${e.sourceColumns?"source token":"token"} that contributes most: ${K(e.columns[s].label)} makes ${K(e.rows[r].label)} likelier (+${i.toFixed(2)} logit).`}function Na(e,t,n){let o=e.columns.length,r=c=>e.values[n.row*o+c],s=K(e.rows[n.row].label),a=Array.from({length:o},(c,m)=>m).sort((c,m)=>Math.abs(r(m))-Math.abs(r(c))).slice(0,3).map(c=>`${K(e.columns[c].label)} ${us(r(c))}`),l=`Its logit is ${t.logits[n.row].toFixed(2)}, without any input ${t.baseline_logits[n.row].toFixed(2)}.`;return n.column===null?`${s}: most by ${a.join(", ")}. ${l}`:`${K(e.columns[n.column].label)} contributes ${us(r(n.column))} to ${s}. Most: ${a.join(", ")}. ${l}`}function Wa(e){return`Here within ${(Math.max(...e.completeness)*100).toFixed(1)} % (${e.steps} steps).`}function us(e){return(e<0?"−":"+")+Math.abs(e).toFixed(2)}var[Ua,Ga]=[78,140],za=16,nt=38,ja=44,mo=8,qa=26;function Ve(e,t){return e.status[t]!=="dropped"}function $n(e,t,n=0){let o=Math.floor(Math.max(Ua,Math.min(Ga,(n-16)/(t+1)))),r=o-za,s=Array.from({length:t+1},()=>[]);e.step.forEach((m,u)=>{m<=t&&s[m].push(u)});let i=m=>e.total[m]??-1/0,a=new Map,l=0;s.forEach((m,u)=>{m.sort((p,f)=>Number(Ve(e,f))-Number(Ve(e,p))||i(f)-i(p));let h=qa;m.forEach((p,f)=>{f>0&&!Ve(e,p)&&Ve(e,m[f-1])&&(h+=8),a.set(p,{candidate:p,x:mo+u*o,y:h,rank:f+1}),h+=ja}),l=Math.max(l,h)});let c=mo+t*o+r+8;return{nodes:a,steps:s,lastStep:t,step:o,node:r,width:c,height:l+4}}function zt(e,t){let n=[t];for(;e.step[n[0]]>0;)n.unshift(e.parent[n[0]]);return n}function ds(e,t,n){let o=Math.floor((t-mo)/e.step);return e.steps[o]?.find(s=>{let i=e.nodes.get(s);return t>=i.x&&t<=i.x+e.node&&n>=i.y&&n<=i.y+nt})??null}function ps(e,t,n,o){let r=e.step[n],s=t.steps[r],i=s.indexOf(n);return o==="ArrowUp"?s[Math.max(0,i-1)]:o==="ArrowDown"?s[Math.min(s.length-1,i+1)]:o==="ArrowLeft"?e.parent[n]:o==="ArrowRight"?t.steps[r+1]?.find(a=>e.parent[a]===n)??n:null}var po=new WeakMap;function ho(e,t,n,o,r){let s=new Set(t.lineage);for(let a=1;a<=o.lastStep;a++)e.text(o.nodes.get(0).x+a*o.step+o.node/2,10,String(a),{fill:r.muted,size:11,anchor:"middle"});let i=[...o.nodes.keys()].sort((a,l)=>Number(s.has(a))-Number(s.has(l))||Number(Ve(t,a))-Number(Ve(t,l)));for(let a of i){if(a===0)continue;let l=Ve(t,a),c=s.has(a)?{stroke:r.hue,width:3.5}:l?{stroke:r.hue,width:1.2,opacity:.75}:{stroke:r.muted,width:.8,opacity:.35};e.path(gs(t,o,a),c)}for(let a of i)fs(e,t,n,o,r,a,s.has(a))}function hs(e,t,n,o,r,s){let i=zt(t,s);for(let a of i.slice(1))e.path(gs(t,o,a),{stroke:r.accent,width:2});for(let a of i){fs(e,t,n,o,r,a,t.lineage.includes(a));let l=o.nodes.get(a);e.rect(l.x-1,l.y-1,o.node+2,nt+2,{stroke:r.accent,width:a===s?2.5:1.2,radius:t.status[a]==="finished"?12:5})}}function fs(e,t,n,o,r,s,i){let{x:a,y:l}=o.nodes.get(s),c=Ve(t,s);e.rect(a,l,o.node,nt,{fill:r.page,stroke:c?r.hue:r.muted,width:i?3:c?1.2:.8,dash:c?void 0:"3 3",radius:t.status[s]==="finished"?nt/2:4});let m=c?r.ink:r.muted,u=s===0?"start":Va(t,n,s),h=me(u,12,r.font,o.node-8),p=s===0;if(e.text(a+o.node/2,l+(p?nt/2:12),h,{fill:m,size:12,anchor:"middle",weight:i?700:400}),p)return;let f=Math.exp(t.logprob[s]??-1/0);e.text(a+o.node/2,l+25,Z(f),{fill:r.muted,size:11,anchor:"middle"});let g={x:a+8,y:l+nt-6,width:o.node-16};e.rect(g.x,g.y,g.width,3,{fill:r.rule}),e.rect(g.x,g.y,Math.max(1,f*g.width),3,{fill:c?r.hue:r.muted})}function fo(e,t,n,o=400){let r=n.slice(1).map(s=>t[e.token[s]]);return bs(t)?we(r,o):we(r.map(s=>s&&{...s,text:`${s.text} `}),o)}function Va(e,t,n){let o=t[e.token[n]],r=e.step[n]>1&&o?.role==="text"&&!o.text.startsWith(" ");return bs(t)?de(o,r,12):de(o,!1,12)}function bs(e){return po.has(e)||po.set(e,Object.values(e).some(t=>/\s/.test(t.text))),po.get(e)}function gs(e,t,n){let[o,r]=[t.nodes.get(e.parent[n]),t.nodes.get(n)],s=nt/2;return Lt([o.x+t.node,o.y+s],[r.x,r.y+s])}var ws={name:"search",title:"Search",applies:e=>e.search!==null&&e.search.step.length>1,mount:Ka};function Ka({doc:e,store:t,live:n}){let o=e.search,r={...e.vocabulary},s=new ke(async k=>{let v=o.continuations[k];if(v)return v;let E=await n.continue(Number(k));return Object.assign(r,E.vocabulary),E.continuation},()=>t.notify()),i=d("p",{class:"fact"}),a=d("div",{class:"controls"}),l=d("div",{class:"stage",tabindex:0,role:"application","aria-label":"Candidates of the search by step and rank. Arrow keys move, Escape leaves."}),c=d("div",{class:"scroller"},l),m=d("p",{class:"readout",role:"status","aria-live":"polite"}),u=d("div",{class:"card"}),h=d("section",{class:"beam","aria-label":"Beam search"},d("h2",{},Qa(o)),i,a,m,c,el(),u),p=$n(o,o.winner_step),f=null,g=null,b=k=>{let v=l.getBoundingClientRect();return ds(p,(k.clientX-v.left)/Ne(),(k.clientY-v.top)/Ne())};l.addEventListener("pointermove",k=>t.set({pointed:b(k)})),l.addEventListener("pointerleave",()=>t.set({pointed:null})),l.addEventListener("click",k=>t.set({candidate:b(k)})),l.addEventListener("keydown",k=>{if(k.key==="Escape")return t.set({candidate:null});if(!k.key.startsWith("Arrow"))return;k.preventDefault();let v=t.state.candidate,E=v===null||!p.nodes.has(v)?0:ps(o,p,v,k.key);if(E===null)return;t.set({candidate:E,pointed:null});let S=p.nodes.get(E);(S.x<c.scrollLeft||S.x+p.node>c.scrollLeft+c.clientWidth)&&(c.scrollLeft=S.x-c.clientWidth/2)});function w(k){let{state:v}=t,E=ae();if(k.size===0||k.has("unfolded")){p=$n(o,v.unfolded?o.last_step:o.winner_step,h.clientWidth),l.dataset.step=String(p.step);let H=new ot(p.width,p.height,E.font);ho(H,o,r,p,E),f?.remove(),f=H.element,f.setAttribute("aria-hidden","true"),l.style.width=`${p.width}px`,l.style.height=`${p.height}px`,l.prepend(f),i.textContent=Ya(o),X(a,x(),L())}let S=v.pointed??v.candidate,O=new ot(p.width,p.height,E.font);for(let H of new Set([v.candidate,v.pointed]))H!==null&&p.nodes.has(H)&&hs(O,o,r,p,E,H);g?.remove(),g=O.element,g.setAttribute("aria-hidden","true"),l.append(g),m.textContent=S===null?Ja(n.available):Za(e,o,r,p,S),u.hidden=v.candidate===null||v.candidate===0,u.hidden||X(u,...$(v.candidate))}function x(){let k=o.last_step-o.winner_step;if(k<=0)return null;let v=k===1?"step":"steps",E=t.state.unfolded?`Hide the last ${k===1?"":`${k} `}${v}`:`Show ${k} more ${v}`;return d("button",{type:"button",onclick:()=>t.set({unfolded:!t.state.unfolded})},E)}function L(){return he(()=>"search",()=>p,(k,v)=>ho(k,o,r,p,v))}function $(k){let v=zt(o,k),E=fo(o,r,v),S=[["Status",xs[o.status[k]]],["Token",`${de(r[o.token[k]])}, probability ${ys(o,k)}`],["Log-probability",jt(o.total[k])],["Score",`${jt(o.score[k])} (the winner's: ${jt(o.score[o.winners[0]])})`]],O=d("dl",{},...S.flatMap(([H,D])=>[d("dt",{},H),d("dd",{},D)]));return[d("p",{dir:"auto"},d("strong",{},K(E))),O,...A(k)]}let M=k=>e.hypotheses.findIndex(v=>v.candidate===k);async function T(k){if(M(k)<0)try{let v=await n.hypothesis(k);Object.assign(e.blobs,v.blobs),e.hypotheses.push(v.hypothesis)}catch(v){m.textContent=v instanceof Error?v.message:String(v);return}t.set({view:"alignment",hypothesis:M(k),hover:null,locked:null})}function A(k){if(o.status[k]==="finished"&&e.hypotheses.length>0&&(n.available||M(k)>=0))return[d("p",{},d("button",{type:"button",onclick:()=>{T(k)}},"Show its alignment"))];if(o.lineage.includes(k))return[d("p",{class:"small"},"It is part of the winner.")];if(!o.continuations[k]&&!n.available)return[d("p",{class:"small"},"A live page (regard look) shows where this hypothesis would have led.")];let v=s.read(String(k));if(!v){let R=s.problem(String(k));return[d("p",{class:"small"},R??"Continuing this hypothesis …")]}let E=we(v.tokens.slice(0,v.forced).map(R=>r[R])),S=o.score[o.winners[0]],O=S===null?null:v.score-S,H=O===null?"":O>1e-6?" Higher than the winner: the search missed it.":` ${(-O).toFixed(2)} lower than the winner (higher is better).`,D=Y(v.text),y=Xa(D,E),C=y?[d("mark",{},D.slice(0,y)),D.slice(y)]:[D];return[d("p",{dir:"auto"},"If the model had to begin this way: ",...C),d("p",{class:"small"},`Score ${jt(v.score)}.${H} The same search continued it.`)]}return{element:h,update:w}}var xs={open:"kept and extended",finished:"finished",dropped:"dropped: not among the best of its step",beaten:"open when the search ended: it could not win any more"};function Xa(e,t){let n=t.replace(/\s/g,""),o=0;for(let r=0;r<e.length;r++)if(!/\s/.test(e[r])){if(o===n.length)return r;if(e[r]!==n[o++])return 0}return o===n.length?e.length:0}function Qa(e){let t=e.settings.beam_size;return e.settings.search==="greedy"?"Greedy search":`Beam search, ${String(t)} hypotheses per step`}function Ya(e){let t=$n(e,e.winner_step),n=e.lineage.slice(1).map(s=>t.nodes.get(s)?.rank??1),o=Math.max(...n),r=[`The winner ended at step ${e.winner_step}.`];return r.push(o===1?"It ranked first at every step.":`It was not always the best: at step ${n.indexOf(o)+1} it ranked ${o} of ${t.steps[n.indexOf(o)+1].length}.`),e.last_step>e.winner_step?r.push(`The search continued to step ${e.last_step} to see whether a longer hypothesis wins.`):e.end==="max_new_tokens"&&r.push("It ended at the maximum length."),r.join(" ")}function Za(e,t,n,o,r){if(r===0)return`The search starts from the text ${K(Y(e.text,80))}.`;let s=fo(t,n,zt(t,r),120),i=o.nodes.get(r)?.rank,a=i?`rank ${i}, `:"";return`Step ${t.step[r]}, ${a}${xs[t.status[r]]}: ${K(s)}. Token probability ${ys(t,r)}, score ${jt(t.score[r])}.`}function Ja(e){return Ee("a hypothesis","to read it",e?"Click a dropped one to see where it would have led":"Click to pin")}function ys(e,t){return ie(Math.exp(e.logprob[t]??-1/0))}function jt(e){return e===null?"−∞":e.toFixed(2).replace("-","−")}function el(){let e=(t,n)=>d("span",{},d("i",{class:t}),n);return d("div",{class:"legend small"},e("winner","winner"),e("","kept"),e("finished","finished"),e("dropped","dropped"),d("span",{},"number and bar: probability of the token"))}var ks=.005,bo=Math.log(1.05);function Mn(e){return Object.entries(e.delta).flatMap(([t,n])=>n.flatMap((o,r)=>o.flatMap((s,i)=>s===null?[]:[{key:`${t}.${r}.${i}`,group:t,layer:r,head:i,delta:s}])))}function vs(e){let t=Mn(e).reduce((n,o)=>n&&n.delta<=o.delta?n:o,null);return t&&t.delta<=-bo?t:null}function $s(e){let t=Mn(e).reduce((n,o)=>n&&n.delta>=o.delta?n:o,null);return t&&t.delta>=bo?t:null}var go=e=>Math.abs(e)>=ks;function tl(e,t){return{before:Math.exp(e.baseline),after:Math.exp(e.baseline+t)}}function Ln(e,t,n=1){let o=n===1?"Without this head":`Without these ${n} heads`,{before:r,after:s}=tl(e,t),[i,a]=[Z(r),Z(s)];return go(t)?i===a?`${o} ${e.output} is ${wo(t)} ${t<0?"less":"more"} probable.`:`${o} the probability of ${e.output} ${t<0?"falls":"rises"} from ${i} to ${a}.`:`${o} ${e.output} stays as probable: ${n===1?"it does":"they do"} nothing here that the other heads do not replace.`}function wo(e){let t=Math.exp(Math.abs(e));if(t<10)return`${t.toFixed(t<1.095?2:1)} times`;let n=Number(t.toPrecision(2));return`about ${n<1e9?n.toLocaleString("en"):n.toExponential(0)} times`}function qt(e){let t=Math.exp(Math.abs(e)),n=t<100?t.toPrecision(2):t<1e4?t.toFixed(0):`e${(Math.abs(e)/Math.LN10).toFixed(0)}`;return Math.abs(e)<bo?"":(e<0?"÷":"×")+n.replace(/^e/,"1e")}var xo=e=>(e<0?"−":"+")+Math.abs(e).toFixed(2);function Ms(e,t){let n=e.ablation?.outputs??[],o=e.sequences.target??[],r=[];return n.forEach((s,i)=>{let a=s===null?void 0:o[s];if(!a||a.logprob===void 0)return;let l=r.at(-1),[c,m]=[a.logprob??-1/0,t[i]??-1/0];l&&a.word!==null&&l.tokens[0].word===a.word?(l.tokens.push(a),l.outputs.push(i),l.total+=c,l.change+=m):r.push({tokens:[a],outputs:[i],total:c,change:m,label:"",before:0,after:0})}),r.map(({tokens:s,outputs:i,total:a,change:l})=>({outputs:i,label:s[0].role==="special"?s[0].text:we(s,60),before:Math.exp(a),after:Math.exp(a+l)}))}function Ls(e){let t=o=>Math.log(o.after/o.before),n=e.reduce((o,r)=>o&&t(o)<=t(r)?o:r,null);return n&&n.before>0&&t(n)<=-ks?n:null}var nl=e=>/^\d+$/.test(e.trim())?`Label ${e.trim()}`:e.trim();function Ts(e,t){let n=({labels:o,probabilities:r})=>`${nl(o[0])} ${Z(r[0])}`;return e.predictions.flatMap((o,r)=>{let s=t[r];if(!s?.labels.length||!o.labels.length)return[];if(e.predictions.length>1&&o.labels[0]===s.labels[0])return[];let i=o.position===null?void 0:e.sequences.source?.[o.position];return[`${i&&i.role==="text"?`${K(we([i],30))}: `:""}${n(o)} → ${n(s)}`]})}function Tt(e){let t=e.split(".");return{group:t.slice(0,-2).join("."),layer:Number(t.at(-2)),head:Number(t.at(-1))}}function ko(e,t){let o=Math.floor((t-40)/e.heads),r=Math.max(9,Math.min(112,o));return{pitch:r,cell:r-(r>20?4:1),left:40,top:Ss,width:40+e.heads*r,height:Ss+e.layers*yo(r)}}var yo=e=>e>80?46:Math.min(e,36),Ss=32;function Es(e,t,n,o,r,s){let{left:i,top:a,pitch:l,cell:c}=o,[m,u]=[yo(l),yo(l)-(l-c)],h=Math.max(1e-9,...Object.values(t.delta).flat(2).map(f=>Math.abs(f??0))),p={fill:r.muted,size:11};e.text(i,7,"head",p),e.text(i-8,23,"layer",{...p,anchor:"end"});for(let f=0;f<n.heads;f++)(l>=18||f%4===0)&&e.text(i+f*l+c/2,23,String(f+1),{...p,anchor:"middle"});t.delta[n.name].forEach((f,g)=>{let b=a+g*m;(m>=14||g%2===0)&&e.text(i-8,b+u/2,String(g+1),{...p,anchor:"end"}),f.forEach((w,x)=>{let L=i+x*l;if(w===null)return e.rect(L,b,c,u,{stroke:r.rule});let $=.62*Math.abs(w)/h;e.rect(L,b,c,u,{fill:w<0?r.hue:r.minus,opacity:$}),e.rect(L+.5,b+.5,c-1,u-1,{stroke:r.rule}),l>=40&&e.text(L+c/2,b+u/2,qt(w),{fill:r.ink,size:l>80?15:12,anchor:"middle"})})});for(let{group:f,layer:g,head:b}of s.map(Tt))f===n.name&&e.rect(i+b*l,a+g*m,c,u,{stroke:r.accent,width:3})}var As={name:"break",title:"Break it",applies:e=>e.ablation!==null&&e.attention.length>0,mount:ol};function ol({doc:e,store:t,blobs:n,live:o}){let r=e.ablation,s=e.attention.filter(y=>r.delta[y.name]),i=new Map(Mn(r).map(y=>[y.key,y])),[a,l]=[vs(r),$s(r)],c=Math.max(1e-9,...[...i.values()].map(({delta:y})=>Math.abs(y))),m=new ke(y=>o.ablate(y.split(",")),()=>t.notify()),u=d("p",{class:"readout",role:"status","aria-live":"polite"}),h=d("div",{class:"card result"}),p=x("All on",()=>t.set({headsOff:[]})),f=new Map,g=s.map(A),b=he(()=>`break.${L().name}`,()=>ko(L(),900),(y,C)=>{let R=L();Es(y,r,R,ko(R,900),C,t.state.headsOff)}),w=d("section",{class:"break","aria-label":"Break it"},d("h2",{},"What breaks if a head is switched off?"),d("p",{class:"fact"},$()),d("div",{class:"controls"},a&&x("Switch off the head that matters most",()=>t.set({headsOff:[a.key]})),l&&x("Switch off the head that hurts most",()=>t.set({headsOff:[l.key]})),p,b),d("div",{class:"grids"},...g),u,h,d("div",{class:"legend small"},d("span",{},d("i",{class:"plus"}),"the head helps: without it the output is less probable (÷)"),d("span",{},d("i",{class:"minus"}),"without it the output is more probable (×)")),d("p",{class:"small"},M()));function x(y,C){return d("button",{type:"button",onclick:C},y)}function L(){let[y]=t.state.headsOff;return s.find(C=>y&&Tt(y).group===C.name)??s[0]}function $(){return a?`${wt(a.group,a.layer,a.head)} matters most. ${Ln(r,a.delta).replace("this head","it")}`:`No single head is needed: without any of them ${r.output} stays about as probable.`}function M(){let y=i.size,C=Object.keys(r.texts).length,R=e.model.family!=="encoder_only"&&C<y&&!o.available?` It has the new output of ${C} of ${y} heads, those with the largest effect: the rest would have taken long.`:"";return`${o.available?"Switch off as many heads as you like.":`A saved page switches off one head at a time: it has no model to try combinations with (regard look has).${R}`} ÷8.0: the output is 8 times less probable without the head. Heads can replace each other, so a small change does not mean that a head does nothing.`}function T(y){let{headsOff:C}=t.state,R=C.filter(I=>I!==y);R.length<C.length?t.set({headsOff:R}):t.set({headsOff:o.available?[...C,y]:[y]})}function A(y){let C=d("div",{class:y.heads>8?"switches dense":"switches",style:`--heads: ${y.heads}`,"data-group":y.name});C.append(d("span",{class:"small"},"layer"));for(let R=0;R<y.heads;R++)C.append(d("span",{class:"small"},R===0&&y.heads<=8?"head 1":String(R+1)));for(let R=0;R<y.layers;R++){C.append(d("span",{class:"small"},String(R+1)));for(let I=0;I<y.heads;I++){let G=`${y.name}.${R}.${I}`,P=i.get(G)?.delta??0,N=Math.round(42*Math.abs(P)/c),z=P<0?"--hue":"--minus",j=d("button",{type:"button",role:"switch",class:"switch",tabindex:R+I===0?0:-1,"aria-label":`${wt(y.name,R,I)}${P?`, ${qt(P)||"no effect"}`:""}`,title:`${wt(y.name,R,I)}: ${xo(P)} nats`,style:`--effect: color-mix(in srgb, var(${z}) ${N}%, var(--page))`,onclick:()=>T(G),onfocus:()=>k(G),onblur:()=>k(null),onpointerenter:()=>k(G),onpointerleave:()=>k(null)},d("i",{"aria-hidden":"true"}),d("span",{"aria-hidden":"true"},qt(P)));j.dataset.key=G,f.set(G,j),C.append(j)}}return C.addEventListener("keydown",R=>{let I={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]},G=R.target.dataset.key;if(R.key==="Escape")return t.set({headsOff:[]});let P=I[R.key];if(!P||!G)return;R.preventDefault();let{layer:N,head:z}=Tt(G),j=f.get(`${y.name}.${N+P[0]}.${z+P[1]}`);j&&(f.get(G).tabIndex=-1,j.tabIndex=0,j.focus())}),d("div",{class:"group"},d("h3",{},ve[y.name]),d("div",{class:"scroller"},C))}function k(y){let C=y===null?void 0:i.get(y);u.textContent=C?`${wt(C.group,C.layer,C.head)}. ${Ln(r,C.delta)}`:"Every switch is a head. Switch one off to see what changes without it."}function v(y){let[C]=y;if(y.length===1){let{group:R,layer:I,head:G}=Tt(C),P=r.token_deltas?.[R],N=P&&e.blobs[P]?n.read(P):void 0,z=N?.shape[2]??0,j=(I*(N?.shape[1]??0)+G)*z,V={text:r.texts[C],delta:i.get(C)?.delta,token_deltas:N&&Array.from(N.codes.subarray(j,j+z)),predictions:r.predictions?.[C]};if(V.text!==void 0||V.predictions!==void 0||!o.available)return V}return m.read(y.join())??null}function E(y){if(y.length===0)return[d("p",{class:"retyped",dir:"auto"},Y(et(e))),d("p",{class:"small"},"All heads are on.")];let C=y.map(Tt).map(({group:U,layer:W,head:oe})=>wt(U,W,oe)),R=d("p",{class:"small"},`Off: ${C.slice(0,6).join("; ")}${C.length>6?"; …":""}`),I=v(y);if(!I){let U=y.length===1?"Running the model without this head …":"Running the model without these heads …";return[R,d("p",{},m.problem(y.join())??U)]}let{delta:G,token_deltas:P,predictions:N,text:z}=I,j=P?Ms(e,P):[],V=G===void 0?"Not measured.":Ln(r,G,y.length),_=G===void 0?"":`${wo(G)} ${G<0?"less":"more"} probable; ${xo(G)} nats`;return[R,...N?S(N):O(z),d("p",{class:"effect",title:_},V),...H(j,G)]}function S(y){let C=Ts(e,y),R=e.predictions.some((G,P)=>G.labels[0]!==y[P]?.labels[0]),I=e.predictions.length===1;return[...(C.length?C.slice(0,12):[et(e)]).map(G=>d("p",{class:"retyped",dir:"auto"},Y(G))),d("p",{class:"small verdict"},R?I?"The label changes.":`${C.length} of ${e.predictions.length} predictions change.`:I?"The label stays the same.":"All predictions stay the same.")]}function O(y){if(e.model.family==="encoder_only")return[d("p",{class:"retyped",dir:"auto"},Y(et(e)))];if(y===void 0)return[d("p",{class:"small verdict"},"This page does not have the new output of this head; regard look shows it.")];let R=kt(Y(e.output,4e3).trim(),Y(y,4e3).trim()).map(({kind:G,text:P})=>G==="same"?P:d(G==="removed"?"del":"ins",{},P)),I=y===e.output;return[d("p",{class:"retyped",dir:"auto"},...R),d("p",{class:"small verdict"},I?"The output stays the same.":y.trim()?"The output changes.":"Nothing is left.")]}function H(y,C){let R=Ls(y);if(!R||C===void 0||!go(C)||y.length<2)return[];let I=N=>Math.log(N.after/N.before)||0,G=Math.max(...y.map(N=>Math.abs(I(N)))),P=y.map(N=>{let z=I(N),j=G>0?Math.round(42*Math.abs(z)/G):0,V=z<0?"--hue":"--minus",_=`${Z(N.before)} → ${Z(N.after)}`;return d("span",{class:"word",title:_,style:`background: color-mix(in srgb, var(${V}) ${j}%, var(--page))`},Y(N.label,40))});return[d("p",{class:"hurt"},`${K(Y(R.label,40))} suffers most: from ${Z(R.before)} to ${Z(R.after)}.`),d("p",{class:"words",dir:"auto"},...P.slice(0,80))]}function D(){let{headsOff:y}=t.state;for(let[C,R]of f)R.setAttribute("aria-checked",String(!y.includes(C)));p.disabled=y.length===0,X(h,...E(y)),u.textContent||k(null)}return{element:w,update:D}}var at=e=>e?.bytes?`‹${e.bytes}›`:e?.text??"?";function Rs(e,t){return{isSameModel:e.model.sha256===t.model.sha256,isSameInput:e.text===t.text,input:kt(e.text,t.text),output:rl(Cs(e),Cs(t)),sure:[wn(e),wn(t)],split:sl(e,t)}}function Cs(e){if(!e.sequences.target)return Re(e).told.map(o=>e.predictions[o]).filter(o=>o.labels.length>0).map(({labels:o,probabilities:r})=>({text:o[0].trim(),key:o[0].trim(),probability:r[0]}));let t=_e(e).filter(o=>o.role!=="special"),n=[];return t.forEach((o,r)=>{ze(t,r)?n[n.length-1].push(o):n.push([o])}),n.map(o=>({text:we(o,60),key:o.map(at).join("").trim(),probability:Math.exp(o.reduce((r,s)=>r+(s.logprob??-1/0),0))}))}function rl(e,t){let n=o=>o.map(r=>r.key);return hn(n(e),n(t)).map(o=>({kind:o.kind,a:o.kind==="added"?null:e[o.a],b:o.kind==="removed"?null:t[o.b]}))}function Ds(e,t){return $o(_e(e).map(at),_e(t).map(at))}function _e(e){return(e.sequences.target??[]).filter(t=>t.logprob!==void 0)}function vo(e,t){let{next:n}=e,o=t+(e.sequences.target??[]).length-_e(e).length-(n?.first??0);return(n?.tokens[o]??[]).map((r,s)=>({text:de(e.vocabulary[r]),key:at(e.vocabulary[r]),probability:n.probabilities[o][s]}))}function Ps(e,t,[n,o]){let[r,s]=[vo(e,n),vo(t,o)],i=(c,m)=>c.find(u=>u.key===m)?.probability??null,a=new Map([...r,...s].map(c=>[c.key,c.text])),l=c=>Math.max(c.a??0,c.b??0);return[...a].map(([c,m])=>({key:c,text:m,a:i(r,c),b:i(s,c)})).sort((c,m)=>l(m)-l(c))}function Mo(e,t){let[n,o]=[_e(e),_e(t)],r=Math.min(n.length,o.length);for(let s=0;s<r;s++)if(at(n[s])!==at(o[s]))return s;return null}function sl(e,t){let n=Mo(e,t);if(n===null)return null;let o=[e,t].map(i=>_e(i)[n]),r=(i,a)=>vo(i,n).find(l=>l.key===at(a))?.probability??null,s=(i,a,l)=>({text:de(a),probability:Math.exp(a.logprob??-1/0),ofOther:r(i,l)});return{before:we(_e(e).slice(0,n),400),a:s(e,o[0],o[1]),b:s(t,o[1],o[0])}}function $o(e,t){let n=[],[o,r]=[[],[]],s=()=>{o.length===r.length&&o.forEach((i,a)=>n.push([i,r[a]])),[o,r]=[[],[]]};for(let i of hn(e,t))i.kind==="removed"?o.push(i.a):i.kind==="added"?r.push(i.b):(s(),n.push([i.a,i.b]));return s(),n}function Fs(e,t){let n=a=>a.map(l=>l.label),o=$o(n(e.rows),n(t.rows)),r=$o(n(e.columns),n(t.columns)),s=(a,l)=>a.label===l.label?a:{...a,label:`${a.label} → ${l.label}`},i=new Float32Array(o.length*r.length);return o.forEach(([a,l],c)=>r.forEach(([m,u],h)=>i[c*r.length+h]=t.value(l,u)-e.value(a,m))),{rows:o.map(([a,l])=>s(e.rows[a],t.rows[l])),columns:r.map(([a,l])=>s(e.columns[a],t.columns[l])),rowPairs:o,columnPairs:r,values:i}}var Hs=e=>`${e} ${e===1?"word":"words"}`,il=e=>`${Hs(e)} ${e===1?"differs":"differ"}`,it=e=>K(Y(e.trim()||"␣",40));function _s(e){let{isSameModel:t,isSameInput:n,input:o,output:r,sure:s,split:i}=e,a=[],l=t?"One model":"Two models";n?a.push(`${l}, the same input.`):a.push(`${l}, two inputs: ${il(Math.max(1,kr(o)))}.`),a.push(al(r));let[c,m]=s;c&&m&&c.kind===m.kind&&a.push(ll(c,m)),i&&a.push(ul(i));let u=ml(r);if(u&&Math.abs(u.b.probability-u.a.probability)>=.01){let h=u.b.probability>u.a.probability?"likelier":"less likely",[p,f]=[u.a,u.b].map(g=>Z(g.probability));a.push(`Of the words in both outputs, ${it(u.a.text)} changes most: ${h} in B, ${f} instead of ${p}.`)}return a}function al(e){let t=e.filter(i=>i.kind!=="same");if(e.length===0)return"Both outputs are empty.";if(t.length===0)return"The outputs are the same.";let[n,o]=[t.filter(i=>i.a),t.filter(i=>i.b)];if(e.length===2&&n.length===1&&o.length===1)return`A says ${it(n[0].a.text)}, B says ${it(o[0].b.text)}.`;let r=Math.max(e.filter(i=>i.a).length,e.filter(i=>i.b).length),s=Math.max(n.length,o.length);return`${s} of ${Hs(r)} of the output ${s===1?"differs":"differ"}.`}function ll(e,t){let[n,o]=[Z(e.value),Z(t.value)],r=e.kind==="token"?" per token":"";if(n===o){let s=Math.max(e.value,t.value)/Math.max(Math.min(e.value,t.value),Number.MIN_VALUE);return s<1.5?`A and B are equally sure: ${n}${r}.`:`${e.value>t.value?"A":"B"} is surer: its output is about ${cl(s)} times as likely (both ${n}${r}).`}return e.value<t.value?`B is surer: ${o}${r} instead of ${n}.`:`A is surer: ${n}${r}, B ${o}.`}var cl=e=>e<10?e.toFixed(1):e<1e6?Math.round(e).toLocaleString("en"):"a million or more";function ul({before:e,a:t,b:n}){let o=e?`After ${it(e)}`:"At the start",r=(a,l,c)=>a===null?"":` (${l} gives ${it(c)} ${Z(a)})`,s=`A writes ${it(t.text)} with ${Z(t.probability)}${r(n.ofOther,"B",t.text)}`,i=`B writes ${it(n.text)} with ${Z(n.probability)}${r(t.ofOther,"A",n.text)}`;return`${o}, ${s}; ${i}.`}function ml(e){let t=o=>Math.abs(o.b.probability-o.a.probability),n=e.filter(o=>o.kind==="same");return n.length?n.reduce((o,r)=>t(r)>t(o)?r:o):null}function Os(e,t,n){let o=(l,c,m)=>c.length+m.length-2*l.length,r=o(e.rowPairs,t.rows,n.rows),s=o(e.columnPairs,t.columns,n.columns);if(r+s===0)return"Every cell of A is compared with one of B.";let i=(l,c)=>l?[`${l} ${c}${l===1?"":"s"}`]:[];return`Rows and columns are paired by equal tokens; ${[...i(r,"row"),...i(s,"column")].join(" and ")} without a counterpart ${r+s===1?"is":"are"} left out.`}function lt({store:e,blobs:t,live:n},o=16){let r=new ke(async i=>{let[a,l,c]=i.split("|");return Be(await n.map(a,Number(l),Number(c)))},()=>e.notify(),o),s=(i,a,l)=>`${i.name}|${a}|${l}`;return{read(i,a,l){let c=i.maps[`${a}.${l}`];return c?t.read(c):n.available?r.read(s(i,a,l)):null},problem:(i,a,l)=>r.problem(s(i,a,l))}}var Ns={name:"compare",title:"Compare",applies:e=>e.against!==void 0,mount:dl};function dl(e){let{doc:t,store:n}=e,o=t.against,r=Rs(t,o),s=new ke(u=>Be(o.blobs[u]),()=>n.notify()),i=new vt({...o,live:t.live,session:t.session},!0),a=[lt(e),lt({doc:o,store:n,blobs:s,live:i})],l=fl(e,o),c=bl(e,o,r,a);return{element:d("section",{class:"compare","aria-label":"Compare"},d("h2",{},pl(r)),d("ul",{class:"facts"},..._s(r).map(u=>d("li",{},u))),d("div",{class:"sides"},Is("A",t,r),Is("B",o,r)),d("p",{class:"small"},"Underlined: only on this side. Below each word of the output: its probability."),l?.element,c.element),update:u=>{let h=u.size>0&&[...u].every(p=>p==="hover"||p==="locked");h||l?.update(),c.update(h)}}}function pl({isSameModel:e,isSameInput:t}){return t?e?"What differs between two runs?":"What differs between two models?":e?"What differs between two inputs?":"What differs between two models and inputs?"}function Is(e,t,{input:n,output:o}){let r=e==="A"?"added":"removed",s=n.filter(c=>c.kind!==r).flatMap(({kind:c,text:m})=>{let u=Y(m.trimStart());return[/^\s/.test(m)?" ":"",c==="same"?u:d("mark",{},u)]}),i=e==="A"?"a":"b",a=o.filter(c=>c.kind!==r).map(c=>hl(c[i],c.kind!=="same")),l=$t(Re(t).untagged);return d("div",{class:"card"},d("h3",{},[e,Y(t.model.name,60)].filter(Boolean).join(": ")),d("p",{class:"small",dir:"auto"},...s),d("p",{class:"words",dir:"auto"},...a.length?a:[Y(et(t),200)]),l?d("p",{class:"small"},l):null)}function hl(e,t){let n=Y(e.text||"␣",60);return d("span",{},t?d("mark",{},n):n,d("span",{class:"small"},Z(e.probability)))}function fl({doc:e,store:t},n){if(!e.next||!n.next)return null;let[o,r]=[_e(e),_e(n)],s=Math.min(e.next.tokens.length,n.next.tokens.length),i=Ds(e,n).filter(([w,x])=>w<s&&x<s),a=Mo(e,n);if(a!==null&&a<s&&!i.some(([w])=>w===a)&&(i.push([a,a]),i.sort((w,x)=>w[0]-x[0])),i.length===0)return null;let l=Math.max(0,i.findIndex(([w])=>w===a)),c=[rt(o),rt(r)],m=d("div",{class:"chips scroller",role:"group","aria-label":"Output position"}),u=d("p",{class:"fact"}),h=d("table",{class:"next"}),p=d("div",{},d("h3",{},"What each would write next"),m,u,h),f=i.map(([w,x],L)=>{let[$,M]=[c[0][w],c[1][x]];return d("button",{type:"button",onclick:()=>t.set({compared:L})},$===M?$:`${$} → ${M}`)});m.append(...f),m.addEventListener("keydown",w=>{let x={ArrowLeft:-1,ArrowRight:1}[w.key];if(!x)return;w.preventDefault();let L=Math.max(0,Math.min(i.length-1,g()+x));t.set({compared:L}),f[L].focus()});let g=()=>Math.min(t.state.compared??l,i.length-1);function b(){let w=g();f.forEach((A,k)=>A.setAttribute("aria-pressed",String(k===w)));let[x,L]=i[w],$=a===null||x===L&&x<=a;u.textContent=`${$?"Both wrote the same before this token.":"Each continues its own beginning."} –: less probable than those listed.`;let M=A=>{let k=d("span",{class:"bar"});return k.style.width=`${(A??0)*60}%`,d("td",{},k,A===null?"–":Z(A))},T=Ps(e,n,i[w]).slice(0,8).map(A=>d("tr",{},d("th",{scope:"row",dir:"auto"},A.text),M(A.a),M(A.b)));X(h,d("thead",{},d("tr",{},...["Token","A","B"].map(A=>d("th",{scope:"col"},A)))),d("tbody",{},...T))}return{element:p,update:b}}function bl({doc:e,store:t},n,{isSameModel:o},r){let s=e.attention.map(A=>A.name).filter(A=>Tn(n,A));if(s.length===0)return{element:d("p",{class:"fact"},"The two models have no attention of the same kind to compare."),update:()=>{}};let i=d("div",{class:"controls"}),a=d("p",{class:"readout",role:"status","aria-live":"polite"}),l=d("p",{class:"small"}),c=["A","B","B − A"].map(A=>new ce(`Weights of ${A}. Arrow keys move, Escape releases.`,A==="B − A"?{}:{tabindex:-1})),m=c.map(()=>d("h3")),u=c.map((A,k)=>d("div",{},m[k],d("div",{class:"scroller"},A.element))),h=d("div",{class:"maps"},...u),p=d("div",{class:"legend small"},d("span",{},d("i",{class:"plus"}),"more weight in B"),d("span",{},d("i",{class:"minus"}),"more weight in A")),f=d("div",{},d("h3",{},"What one head reads"),i,a,h,p,l),g=[null,null],b=[],w=null,x=()=>w?Fe(t.state.locked??t.state.hover,w):null,L=(A,k)=>{if(!A||!w||k===2)return A;let v=(O,H)=>O.findIndex(D=>D[k]===H),E=v(w.rowPairs,A.row),S=A.column===null?null:v(w.columnPairs,A.column);return E<0?null:{row:E,column:S!==null&&S<0?null:S}};c.forEach((A,k)=>{let v=E=>{let{x:S,y:O}=A.locate(E),H=k===2?w:g[k];return H&&b[k]?L(Ue(H,b[k],S,O),k):null};A.element.addEventListener("pointermove",E=>{let[S,O]=[v(E),t.state.hover];(S?.row!==O?.row||S?.column!==O?.column)&&t.set({hover:S})}),A.element.addEventListener("pointerleave",()=>t.set({hover:null})),A.element.addEventListener("click",E=>t.set({locked:t.state.locked?null:v(E)}))}),c[2].element.addEventListener("keydown",A=>{if(A.key==="Escape")return t.set({locked:null});let v={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[A.key];if(!v||!w)return;A.preventDefault();let E=(H,D)=>Math.max(0,Math.min(D-1,H)),S=x()??{row:-v[0],column:-v[1]},O={row:E(S.row+v[0],w.rows.length),column:E((S.column??0)+v[1],w.columns.length)};t.set({locked:O,hover:null})});function $(A){let k=s.includes(A.group)?A.group:s[0],[v,E]=[Tn(e,k),Tn(n,k)],[S,O]=k===A.group?[A.layer,A.head]:v.default_head,H=A.againstHead,D=H!==null&&H[0]<E.layers&&H[1]<E.heads,[y,C]=o?[S,O]:D?H:E.default_head;return[{group:v,layer:S,head:O},{group:E,layer:y,head:C}]}function M(A){let k=$(A),v={hover:null,locked:null},E=({group:y})=>Array.from({length:y.layers*y.heads},(C,R)=>{let[I,G]=[Math.floor(R/y.heads),R%y.heads];return[`${I}.${G}`,`layer ${I+1}, head ${G+1}`]}),S=(y,C,R)=>Se(y,E(k[C]),`${k[C].layer}.${k[C].head}`,I=>{let[G,P]=I.split(".").map(Number);R(G,P)}),O=y=>{let[C,R]=Tn(e,y).default_head;t.set({group:y,layer:C,head:R,againstHead:null,...v})},H=[e,n].some(y=>Object.values(y.sequences).some(C=>C.some((R,I)=>ze(C,I)))),{group:D}=k[0];return[s.length>1?Se("Attention",s.map(y=>[y,ve[y]]),D.name,O):null,S(o?"Head":"Head of A",0,(y,C)=>t.set({group:D.name,layer:y,head:C,...v})),o?null:S("Head of B",1,(y,C)=>t.set({againstHead:[y,C],...v})),H?Me("Words",A.words,y=>t.set({words:y,...v})):null,he(()=>`compare.${D.name}.${k[0].layer}.${k[0].head}`,()=>b[2]??{width:0,height:0},(y,C)=>w&&Bs(y,w,b[2],C,null))]}function T(A){let{state:k}=t,v=ae();if(!A){let S=$(k);X(i,...M(k));let O=[e,n],H=S.map(({group:V,layer:_,head:U},W)=>r[W].read(V,_,U));g=S.map(({group:V},_)=>{let U=H[_];if(!U)return null;let W=je(O[_],V),oe=te=>fe(te,k.words,!0);return qe(U.codes,U.shape[1],oe(W.rows),oe(W.columns))});let[D,y]=g;w=D&&y?Fs(D,y):null;let C=H.some(V=>V===null),R=S.map(({group:V,layer:_,head:U},W)=>r[W].problem(V,_,U)).find(Boolean);l.textContent=R??(C?"This file does not have the maps of this head on both sides; choose another head.":w&&D&&y?Os(w,D,y):"");let I=h.clientWidth<820,G=Math.max(240,I?h.clientWidth-6:(h.clientWidth-48)/3),P=window.innerHeight-h.getBoundingClientRect().top-window.scrollY-56,N=Math.max(0,...[D,y,w].map(V=>V?.rows.length??0)),z=k.present||I?640:Math.min(640,Math.max(P,24*N+90)),j=[D,y,w];c.forEach((V,_)=>{let U=j[_];u[_].hidden=!U,U&&(m[_].textContent=["A","B","B − A"][_],b[_]=He(U,G,v,z),V.describe(b[_].left,b[_].top,b[_].cell),V.draw(b[_].width,b[_].height,W=>{_===2?Bs(W,w,b[2],v,null):Ae(W,j[_],b[_],v,{pixelRatio:window.devicePixelRatio||1})}))}),p.hidden=!w}let E=x();c.forEach((S,O)=>{let H=b[O];u[O].hidden||!H||S.drawOverlay(H.width,H.height,D=>{if(!E||!w)return;if(O===2)return gl(D,w,H,v,E);let y={row:w.rowPairs[E.row][O],column:E.column===null?null:w.columnPairs[E.column][O]};Ze(D,g[O],H,v,y,k.locked!==null)})}),a.textContent=w?E?Ws(w,g,E):wl(w,g):"Reading the maps …",!w&&l.textContent&&(a.textContent=l.textContent)}return{element:f,update:T}}var Tn=(e,t)=>e.attention.find(n=>n.name===t);function Bs(e,t,n,o,r){let{cell:s,left:i,top:a}=n,[l,c]=[t.rows.length,t.columns.length],m=Uint32Array.from(t.values,u=>Qe(o.page,u<0?o.minus:o.hue,Math.abs(u)<.002?0:Math.sqrt(Math.abs(u))));l&&c&&e.pixels(i,a,c*s,l*s,{width:c,height:l,data:m}),e.rect(i-.5,a-.5,c*s+1,l*s+1,{stroke:o.rule}),Ot(e,t,n,o,r)}function gl(e,t,n,o,r){let s=n.top+r.row*n.cell,i=t.columns.length*n.cell;e.rect(n.left,s,i,n.cell,{stroke:o.accent,width:1.5}),r.column!==null&&e.rect(n.left+r.column*n.cell,s,n.cell,n.cell,{stroke:o.accent,width:2.5})}function Ws(e,[t,n],o){let r=e.columns.length,s=Array.from(e.values.subarray(o.row*r,(o.row+1)*r)),i=o.column??s.reduce((g,b,w)=>Math.abs(b)>Math.abs(s[g])?w:g,0);if(r===0)return"No column has a counterpart.";let[a,l]=e.rowPairs[o.row],[c,m]=e.columnPairs[i],u=(g,b)=>g.label?K(g.label):`cell ${b+1}`,[h,p]=[t.value(a,c),n.value(l,m)],f=`${p<h?"−":"+"}${ie(Math.abs(p-h))}`;return`${u(e.rows[o.row],o.row)} reads ${u(e.columns[i],i)}: ${ie(h)} in A, ${ie(p)} in B (${f}).`}function wl(e,t){let{values:n,columns:o}=e;if(n.length===0)return"No token of A has a counterpart in B.";let r=0;n.forEach((i,a)=>r=Math.abs(i)>Math.abs(n[r])?a:r);let s={row:Math.floor(r/o.length),column:r%o.length};return`The largest difference: ${Ws(e,t,s)} ${Ee("a cell","to compare it")}`}var ct={entropy:{title:"Entropy",unit:"nats",says:e=>`entropy ${e} nats`},distance:{title:"Distance",unit:"tokens",says:e=>`mean distance ${e} tokens`},previous:{title:"Previous token",unit:"",says:e=>`weight ${e} on the previous token`},first:{title:"First token (attention sink)",unit:"",says:e=>`weight ${e} on the first token`}},xl=34,Lo=30;function To(e,t,n){let o=xl,r=(t-o)/e.heads,s=n?Math.max(30,Math.min(62,Math.floor(r))):Math.max(6,Math.min(20,Math.floor(r))),i=s-(n?8:1),a=Lo;return{cell:i,pitch:s,left:o,top:a,width:o+e.heads*s,height:a+e.layers*s}}function Us(e,t,n,o,r,s,i){let{cell:a,pitch:l,left:c,top:m}=n,u=p=>l>=18||p%Math.ceil(18/l)===0,h={fill:o.muted,size:11};e.text(c,6,"head",h),e.text(c-6,Lo/2+6,"layer",{...h,anchor:"end"});for(let p=0;p<t.heads;p++)u(p)&&e.text(c+p*l+a/2,Lo/2+6,String(p+1),{fill:o.muted,size:11,anchor:"middle"});for(let p=0;p<t.layers;p++)u(p)&&e.text(c-6,m+p*l+a/2,String(p+1),{fill:o.muted,size:11,anchor:"end"});if(r?yl(e,t,n,o,r):kl(e,t,n,o,s),i){let[p,f]=[c+(i.head??0)*l,m+i.layer*l],g=i.head===null?(t.heads-1)*l+a:a,b=r?2.5:1;e.rect(p-b,f-b,g+2*b,a+2*b,{stroke:o.accent,width:r?2.5:2,radius:r?3:0})}}function yl(e,t,n,o,r){let{cell:s,pitch:i,left:a,top:l}=n,[c,m]=r.shape.slice(2),u=r.codes;for(let h=0;h<t.layers;h++)for(let p=0;p<t.heads;p++){let f=(h*t.heads+p)*c*m,g=u.subarray(f,f+c*m),[b,w]=[a+p*i,l+h*i];e.pixels(b,w,s,s,ln(g,c,m,o.pixels,s*2,s*2)),e.rect(b-.5,w-.5,s+1,s+1,{stroke:o.rule,radius:1})}}function kl(e,t,n,o,r){let{cell:s,pitch:i,left:a,top:l}=n,c=So(t,r);t.statistics[r].forEach((m,u)=>m.forEach((h,p)=>{let[f,g]=[a+p*i,l+u*i],b=o.ramp[Math.round(255*(h??0)/c)];e.rect(f,g,s,s,h===null?{stroke:o.rule}:{fill:b})}))}function So(e,t){return t==="previous"||t==="first"?1:Math.max(1e-9,...e.statistics[t].flat().map(n=>n??0))}function Eo(e,t,n,o){let r=Math.floor((n-t.left)/t.pitch),s=Math.floor((o-t.top)/t.pitch);return r>=0&&r<e.heads&&s>=0&&s<e.layers?{layer:s,head:r}:null}function Gs(e,t,n,o){let r=w=>t.statistics[w]?.[n]?.[o]??null,[s,i,a,l]=[r("entropy"),r("distance"),r("previous"),r("first")],c=w=>`${Math.round(w*100)} %`;if(a!==null&&a>=.5)return`This head reads the previous token: it gets ${c(a)} of the weight.`;if(l!==null&&l>=.5&&t.name!=="decoder.cross"&&t.column_count>4)return`This head rests on the first token, an attention sink: it gets ${c(l)} of the weight.`;if(s===null)return"";let m=Math.exp(s),u=m<1.5?"one":String(Math.round(m)),h=e.picture?.kind==="image"?"patch":e.picture?"time step":"token",p=t.columns==="source"?e.picture?h:t.name==="decoder.cross"?"source token":h:"token",f=t.rows==="target"?t.name==="decoder.cross"&&t.row_start>0?"generated token":"token":h,g=u==="one"?p:p.endsWith("ch")?`${p}es`:`${p}s`,b=i===null?"":`, ${i.toFixed(1)} positions away on average`;return`Each ${f} reads about ${u} ${g}${b}.`}var vl=100;function Sn({doc:e}){return e.attention.reduce((t,n)=>t+n.layers*n.heads,0)<=vl}function En({store:e},t,n,o){let r=`${ve[t.name]}: choose a head. Arrow keys move.`,s=new ce(r,{"data-group":t.name}),i=To(t,300,!0),a=u=>{o.textContent=u?$l(t,u.layer,u.head):""},l=u=>{let h=e.state.group===t.name?e.state.query:null;e.set({group:t.name,...u,meanOfHeads:!1,query:h,locked:null,hover:null})};s.element.addEventListener("pointermove",u=>{let{x:h,y:p}=s.locate(u);a(Eo(t,i,h,p))}),s.element.addEventListener("pointerleave",()=>a(null)),s.element.addEventListener("click",u=>{let{x:h,y:p}=s.locate(u),f=Eo(t,i,h,p);f&&(l(f),matchMedia("(max-width: 760px)").matches&&s.element.closest("section")?.querySelector(".detail")?.scrollIntoView())}),s.element.addEventListener("keydown",u=>{let[h,p]={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[u.key]??[];if(h===void 0||p===void 0)return;u.preventDefault();let f=e.state.group===t.name,g=f?e.state:{layer:t.default_head[0],head:t.default_head[1]},b=(x,L)=>Math.max(0,Math.min(L-1,x)),w={layer:b(g.layer+(f?h:0),t.layers),head:b(g.head+(f?p:0),t.heads)};a(w),l(w)});let c=(u,h,p=!1)=>{let f=e.state;i=To(t,Math.max(200,u),h!==null);let g=f.group===t.name?{layer:f.layer,head:p?null:f.head}:null;s.describe(i.left,i.top,i.pitch),h!==void 0&&s.draw(i.width+4,i.height,(b,w)=>Us(b,t,i,w,h,f.statistic,g))},m=d("h2",{},ve[t.name],d("span",{class:"small"},` ${n}`));return{element:d("div",{class:"group"},m,d("div",{class:"scroller"},s.element)),draw:c}}function $l(e,t,n){let o=Object.keys(ct).flatMap(s=>{let i=e.statistics[s]?.[t]?.[n];return i==null?[]:[ct[s].says(i.toFixed(2))]}),r=e.sampled_rows?` (sampled: ${e.sampled_rows} rows)`:"";return`Layer ${t+1}, head ${n+1}: ${o.join(", ")}${r}.`}var Vt=13,Le=17,De=84,An=De+Vt*Le+4;function zs(e,t,n,o){let r=new ge(e,An,An,o.font),s=(m,u)=>Math.max(0,Math.min(u-Vt,Math.round(m)-(Vt>>1))),i=s(n.row,t.rows.length),a=s(n.column??0,t.columns.length),[l,c]=[Math.min(Vt,t.rows.length),Math.min(Vt,t.columns.length)];for(let m=0;m<l;m++){let u=De+m*Le;for(let f=0;f<c;f++){let g=t.codes[(i+m)*t.columns.length+a+f];g>0&&r.rect(De+f*Le,u,Le,Le,{fill:o.ramp[g]})}let h=i+m===n.row?o.accent:o.muted,p=me(t.rows[i+m].label,12,o.font,De-8);r.text(De-5,u+Le/2,p,{fill:h,size:12,anchor:"end"})}for(let m=0;m<c;m++){let u=a+m===n.column?o.accent:o.muted,h=me(t.columns[a+m].label,12,o.font,De-8);r.text(De+(m+.5)*Le,De-5,h,{fill:u,size:12,angle:-90})}r.rect(De-.5,De-.5,c*Le+1,l*Le+1,{stroke:o.rule}),n.column!==null&&r.rect(De+(n.column-a)*Le,De+(n.row-i)*Le,Le,Le,{stroke:o.accent,width:2})}var Kt=10,Cn=60;function Vs(e,t,n){let o=(h,p)=>h<=Cn?[0,h]:[Math.max(0,Math.min(h-Cn,Math.round(p)-Cn/2)),Cn],r=n?.row??0,s=n?.column??r*e.columns.length/Math.max(1,e.rows.length),i=o(e.rows.length,r),a=o(e.columns.length,s),l=Math.min(t,640),c=Math.min(130,l*.3),m=t<600?22:24,u=Kt*2+Math.max(i[1],a[1])*m;return{rows:i,columns:a,pitch:m,left:c,right:l-c-44,width:l,height:u}}function Ao(e,t,n,o,r){let{rows:s,columns:i}=n;for(let l=s[0];l<s[0]+s[1];l++)if(!(r&&l!==r.row))for(let c=i[0];c<i[0]+i[1];c++){let m=t.value(l,c);if(m<(r?.002:.04))continue;let u=Lt([n.left,js(n,l)],[n.right,qs(n,c)]);e.path(u,{stroke:r?o.accent:o.hue,width:.5+3.5*m,opacity:Math.min(1,.08+m)})}for(let l=s[0];l<s[0]+s[1];l++){let c=me(t.rows[l].label,13,o.font,n.left-12),m=r?l===r.row?o.accent:o.muted:o.ink;e.text(n.left-8,js(n,l),c,{fill:m,anchor:"end"})}let a=new Map(r?We(t,r.row,5).map(l=>[l.column,l.weight]):[]);for(let l=i[0];l<i[0]+i[1];l++){let c=me(t.columns[l].label,13,o.font,n.left-12),m=a.get(l),u=m!==void 0&&m>=.01,h=r&&!u?o.muted:o.ink,p=qs(n,l);e.text(n.right+8,p,c,{fill:h}),u&&e.text(n.width-4,p,ie(m),{fill:o.accent,size:12,anchor:"end"})}}function Ks(e,t,n){let o=Math.floor((n-Kt)/t.pitch)+t.rows[0];return o>=0&&o<e.rows.length&&n>=Kt?{row:o,column:null}:null}function js(e,t){return Kt+(t-e.rows[0]+.5)*e.pitch}function qs(e,t){return Kt+(t-e.columns[0]+.5)*e.pitch}function Ml(e){return Float32Array.from(e,t=>{let n=(t-127)/127;return Math.sign(n)*(256**Math.abs(n)-1)/255})}var Co=class{constructor(t,n,o){this.samples=t;this.rate=n;this.moved=o}samples;rate;moved;position=null;audio=null;get seconds(){return this.samples.length/this.rate}play(){this.stop();let t=new AudioContext,n=t.createBuffer(1,this.samples.length,this.rate),o=this.samples.reduce((i,a)=>Math.max(i,Math.abs(a)),.001);n.getChannelData(0).set(this.samples.map(i=>.8*i/o));let r=t.createBufferSource();r.buffer=n,r.connect(t.destination),r.onended=()=>this.audio===t&&this.stop(),r.start(),this.audio=t;let s=()=>{this.audio===t&&(this.position=Math.min(t.currentTime,this.seconds),this.moved(),requestAnimationFrame(s))};s()}stop(){this.audio&&(this.audio.close(),this.audio=this.position=null,this.moved())}};function Xs(e,t,n){let{audio:o,rate:r}=e.picture??{};if(!o||!r)return null;let s=null,i=d("button",{type:"button",class:"play"},"▶ Play"),a=()=>{let l=s!==null&&s.position!==null;if(i.textContent=l?"■ Stop":"▶ Play",l&&!i.isConnected)return s.stop();n()};return i.addEventListener("click",()=>{let l=t.read(o);l&&(s??=new Co(Ml(l.codes),r,a),s.position===null?s.play():s.stop())}),t.read(o),{button:i,position:()=>s?.position??null}}var Ro=32,Qs=.75,Ys=96;function Rn(e,t,n,o=640){let[r,s]=t;if(e.kind==="spectrogram"){let p=Math.max(100,Math.min(220,3*r)),f=Math.max(.6,Math.min(1.3,(o-58)/(p+Ys))),g=Ys*f,b={x:46,y:8,width:Math.min(n-54,1500),height:p*f};return{picture:b,weights:{...b,y:b.y+b.height+34,height:g},cell:{width:e.cell[1]*b.width/s,height:b.height},width:b.x+b.width+8,height:b.y+b.height+34+g+8}}let[i,a]=[22,38],l=n>=560,c=l?(n-Ro)/2-i:n-i-4,m=Math.min(c/s,(o-a-6)/r),u={x:i,y:a,width:s*m,height:r*m},h=l?{...u,x:i+u.width+Ro+i}:{...u,y:a+u.height+Ro+a};return{picture:u,weights:h,cell:{width:e.cell[1]*m,height:e.cell[0]*m},width:h.x+u.width+4,height:h.y+u.height+4}}function Dn(e,[t,n],o){let r=o/Math.max(n,t),s={x:0,y:0,width:n*r,height:t*r},i={width:e.cell[1]*r,height:e.cell[0]*r};return{picture:s,weights:s,cell:i,width:s.width,height:s.height}}function Do(e,t,n,o,r,s,i){Xt(e,t,n,o,r,s,i),t.kind==="image"?Tl(e,t,o,r,s,i):Sl(e,t,o,r,s,i)}function Xt(e,t,n,o,r,s,i){let{x:a,y:l,width:c,height:m}=s.picture;e.pixels(a,l,c,m,Ll(t,n,i));let u=t.kind==="image",h=o.some(p=>p>0);o.forEach((p,f)=>{let g=Math.sqrt(p/r),b=u?Qs*g:h?Qs*(1-g):0,w=St(t,s,s.picture,f),x=u?i.tint:i.page;b>.01&&e.rect(w.x,w.y,w.width,w.height,{fill:x,opacity:b})}),ei(e,s.picture,i)}function Po(e,t,n,o,r,s){let i=(a,l,c,m)=>{let u=St(t,n,a,l);e.rect(u.x,u.y,u.width,u.height,{stroke:c,width:m})};for(let a of[n.picture,n.weights])r!==null&&(i(a,r,o.page,5),i(a,r,o.accent,2.5)),s!==null&&(i(a,s,o.page,3),i(a,s,o.ink,1))}function Zs(e,t,n,o,r){let{x:s,width:i}=n.picture,a=s+Math.min(i,r/(t.seconds??1)*n.cell.width),[l,c]=[n.picture.y,n.weights.y+n.weights.height];e.path(`M${a} ${l}V${c}`,{stroke:o.page,width:5}),e.path(`M${a} ${l}V${c}`,{stroke:o.ink,width:2})}function Js(e,t,n,o){for(let r of[t.picture,t.weights]){if(n<r.x||o<r.y||n>=r.x+r.width||o>=r.y+r.height)continue;let s=Math.min(e.grid[1]-1,Math.floor((n-r.x)/t.cell.width));return(e.grid[0]===1?0:Math.min(e.grid[0]-1,Math.floor((o-r.y)/t.cell.height)))*e.grid[1]+s}return null}function St(e,t,n,o){let r=o%e.grid[1],s=Math.floor(o/e.grid[1]),i=n.x+r*t.cell.width,a=e.grid[0]===1?n.height:t.cell.height;return{x:i,y:n.y+s*a,width:Math.min(t.cell.width,n.x+n.width-i),height:a}}function Ll(e,{codes:t,shape:n},o){let[r,s,i]=n,a=new Uint32Array(s*r),l=Uint32Array.from({length:256},(c,m)=>e.kind==="image"?4278190080|m*65793:Qe(o.page,o.ink,m/255));for(let c=0;c<a.length;c++)a[c]=i<3?l[t[c*i]]:4278190080|t[c*i+2]<<16|t[c*i+1]<<8|t[c*i];return{width:s,height:r,data:a}}function Tl(e,t,n,o,r,s){n.forEach((c,m)=>{let u=St(t,r,r.weights,m),h=s.ramp[Math.round(255*Math.sqrt(c/o))];if(e.rect(u.x,u.y,u.width,u.height,{fill:h}),u.width<30||u.height<14)return;let[p,f]=[u.x+u.width/2,u.y+u.height/2],g=c<.001?"":ie(c).slice(1);e.text(p,f,g,{fill:nn(h),size:11,anchor:"middle"})}),ei(e,r.weights,s);let i=[[r.picture,"What the model read"],[r.weights,"Weight of each patch"]],{width:a,height:l}=r.cell;for(let[c,m]of i){e.text(c.x,c.y-28,m,{fill:s.ink,size:13,weight:600});let u={fill:s.muted,size:11},h=Math.ceil(18/Math.min(a,l));for(let p=0;p<t.grid[1];p+=h)e.text(c.x+(p+.5)*a,c.y-9,String(p),{...u,anchor:"middle"});for(let p=0;p<t.grid[0];p+=h)e.text(c.x-6,c.y+(p+.5)*l,String(p),{...u,anchor:"end"})}}function Sl(e,t,n,o,r,s){let[i,a]=[r.picture,r.weights],l={fill:s.muted,size:11,anchor:"end"},c=(t.rate??0)/2e3;c&&e.text(i.x-6,i.y+6,`${c<10?Number(c.toFixed(1)):Math.round(c)} kHz`,l),e.text(i.x-6,i.y+i.height/2,"mel",l),e.text(i.x-6,i.y+i.height-6,"0",l);let m=i.width/r.cell.width*(t.seconds??1),u=El(m,i.width/60);for(let p=0;p*u<=m*1.0001;p++){let f=i.x+p*u*i.width/m;e.path(`M${f} ${i.y+i.height}v4`,{stroke:s.muted});let g=f+16>i.x+i.width?"end":p?"middle":"start",b=`${Number((p*u).toFixed(3))} s`;e.text(f,i.y+i.height+13,b,{...l,anchor:g})}let h=s.tint;n.forEach((p,f)=>{let g=St(t,r,a,f),b=p/o*a.height,w=g.width>4?1:0;e.rect(g.x,g.y+a.height-b,g.width-w,b,{fill:h})}),e.path(`M${a.x} ${a.y+a.height+.5}h${a.width}`,{stroke:s.muted}),e.text(a.x-6,a.y+5,ie(o),l),e.text(a.x-6,a.y+a.height/2,"weight",l),e.text(a.x-6,a.y+a.height-4,"0",l)}function El(e,t){let n=10**Math.floor(Math.log10(e/Math.max(1,t)));return n*([1,2,5].find(o=>o*n*t>=e)??10)}function ei(e,{x:t,y:n,width:o,height:r},s){e.rect(t-.5,n-.5,o+1,r+1,{stroke:s.rule})}var Al=72,ti=e=>e.attention.filter(t=>t.columns==="source"),Pn=e=>!!e.picture&&ti(e).length>0,ni=e=>({name:e,title:"Look",applies:t=>t.picture?.kind===e&&Pn(t),mount:Cl}),oi=ni("image"),ri=ni("spectrogram");function Cl(e){let{doc:t,store:n,blobs:o}=e,r=t.picture,s=r.kind==="image",[i,a]=s?["patch","patches"]:["time step","time steps"],l=r.grid[0]*r.grid[1],c=ti(t),m=lt(e,64),u=Sn(e),h=d("p",{class:"small",role:"status"}),p=s?"word":"token",f={source:`${i} attends to ${a}`,target:`generated ${p} attends to ${a}`},g=c.map(F=>En(e,F,f[F.rows],h)),b=d("div",{class:"overview"},...g.map(F=>F.element),h),w=d("h2"),x=d("p",{class:"fact"}),L=d("div",{class:"controls"}),$=d("div",{class:"chips",role:"group","aria-label":"What attends"}),M=new ce(`Attention over the ${r.kind}. Arrow keys move what attends, Escape returns.`),T=d("canvas",{role:"img","aria-label":"Color key of the weights, on a square-root scale"}),A=d("div",{class:"key"},T,d("span",{class:"small"},"Weight, square-root scale.")),k=d("p",{class:"readout",role:"status","aria-live":"polite"}),v=d("p",{class:"small"}),E=d("div",{class:"detail"},w,x,L,d("div",{class:"scroller"},$),k,d("div",{class:"scroller"},M.element),A,v),S=d("section",{class:"heads","aria-label":s?"Image":"Spectrogram"},b,E),O=Xs(t,o,()=>oe(n.state,R())),H=null,D=null,y=c.map(F=>fe(je(t,F).rows,s&&F.rows==="target",!0)),C=F=>y[c.indexOf(F)],R=()=>c.find(F=>F.name===n.state.group)??c[0],I=()=>D.subarray(r.first,r.first+l),G=()=>Math.max(1e-9,...I()),P=F=>{let{query:q}=n.state;return q!==null&&F===R()?q:(F.rows==="target"?!s:r.first>0)?0:"mean"},N=()=>{let F=P(R());return R().rows==="target"||F==="mean"||F<r.first?null:F-r.first},z=F=>{let{x:q,y:Q}=M.locate(F);return H&&Js(r,H,q,Q)};M.element.addEventListener("pointermove",F=>{let q=z(F);q!==(n.state.hover?.column??null)&&n.set({hover:q===null?null:{row:0,column:q}})}),M.element.addEventListener("pointerleave",()=>n.set({hover:null})),M.element.addEventListener("click",F=>{let q=z(F);q===null||R().rows==="target"||n.set({query:q===N()?null:r.first+q})}),M.element.addEventListener("keydown",F=>{if(F.key==="Escape")return n.set({query:null});let q=R().rows==="target",Q=q?1:r.grid[1],J={ArrowLeft:-1,ArrowRight:1,ArrowUp:-Q,ArrowDown:Q}[F.key];if(J===void 0)return;F.preventDefault();let se=P(R()),ne=q?0:r.first,ee=C(R()).findIndex(ye=>ye.members[0]===se),le=C(R())[ee<ne?ne:ee+J]?.members[0];le!==void 0&&le>=ne&&n.set({query:le,hover:null})});function j(F,q,Q,J){let se=m.read(F,q,Q);if(!se)return se;let ne=F.column_count,ee=new Float32Array(ne),ye=C(F).filter($e=>J==="mean"||$e.members.includes(J)).flatMap($e=>$e.members);for(let $e of ye)for(let Oe=0;Oe<ne;Oe++)ee[Oe]+=Ie[se.codes[$e*ne+Oe]]/ye.length;return ee}function V(F,q,Q){let se=(q.meanOfHeads?Array.from({length:F.heads},(ee,le)=>le):[q.head]).map(ee=>j(F,q.layer,ee,Q)),ne=se.find(ee=>!ee);return se.some(ee=>!ee)?ne:Float32Array.from({length:F.column_count},(ee,le)=>se.reduce((ye,$e)=>ye+$e[le]/se.length,0))}function _(F){if(!u)return null;if(Object.keys(F.maps).length<F.layers*F.heads)return o.read(F.thumbnails);let q=new Uint8Array(F.layers*F.heads*l);for(let Q=0;Q<F.layers*F.heads;Q++){let J=j(F,Math.floor(Q/F.heads),Q%F.heads,P(F));if(!J)return;let se=J.subarray(r.first,r.first+l),ne=Math.max(1e-9,...se);se.forEach((ee,le)=>q[Q*l+le]=ft(ee/ne))}return{shape:[F.layers,F.heads,...r.grid],codes:q,scale:1}}function U(F){let q=n.state,Q=R();if(q.group!==Q.name)return n.set({group:Q.name,layer:Q.default_head[0],head:Q.default_head[1],query:null});(F.size===0||[...F].some(J=>J!=="hover"))&&W(q,Q),oe(q,Q)}function W(F,q){let Q=ae(),J=o.read(r.pixels),se=V(q,F,P(q));D=se??null,g.forEach(($e,Oe)=>$e.draw(b.clientWidth,_(c[Oe]),F.meanOfHeads));let ne=F.meanOfHeads?`layer ${F.layer+1} of ${q.layers}, mean of ${q.heads} heads`:sn(q,F.layer,F.head);w.textContent=`${rn(t,q)} (${ne})`,X(L,...ht(q)),X($,...pe(q)),x.textContent=D?re():se===null?"This file has no complete map of this head.":"";let ee=m.problem(q,F.layer,F.head);if(v.textContent=[ee,D&&(s?`Full color is the largest weight here, ${ie(G())}; in Heads it is 1.`:`Faded where the weight is small; clear at the largest, ${ie(G())}.`),"Attention shows what a head read, not why the model decided."].filter(Boolean).join(" "),A.hidden=!s||!D,!J)return;H=Rn(r,J.shape,Math.max(260,E.clientWidth-4),Xe(M.element));let{x:le,y:ye}=H.picture;M.describe(le,ye,H.cell.width),M.draw(H.width,H.height,$e=>Do($e,r,J,D?I():new Float32Array(l),D?G():1,H,Q)),D&&cn(new ge(T,256,30,Q.font),Q,256,G())}function oe(F,q){let Q=F.hover?.column??null;if(H&&M.drawOverlay(H.width,H.height,(J,se)=>{let ne=Q!==null&&Q<l?Q:null;Po(J,r,H,se,N(),ne);let ee=O?.position()??null;ee!==null&&Zs(J,r,H,se,ee)}),!D||!H){k.textContent=x.textContent||"Reading the map …";return}k.textContent=ue(q,Q)}let te=F=>de(t.sequences.source?.[r.first+F]);function B(F){let q=P(F);if(q==="mean")return F.rows==="target"?`All generated ${p}s (mean)`:`All ${a} (mean)`;let Q=je(t,F).rows[q],J=C(F).find(({members:ne})=>ne.includes(q)),se=J&&J.members.length>1?J.label:de(Q);return F.rows==="target"?`Generating ${K(se)}, the decoder`:Q?.role==="special"?`The ${se}`:se[0].toUpperCase()+se.slice(1)}function re(){let F=[...I()].sort((ne,ee)=>ee-ne),q=F.reduce((ne,ee)=>ne+ee,0),[Q,J]=[0,0];for(;Q<l&&J<q/2;)J+=F[Q++];return`${Q} of ${l} ${l===1?i:a} ${Q===1?"holds":"hold"} half of the weight on the ${r.kind}.`}function ue(F,q){let Q=B(F),J=P(F)==="mean"?"attend":"attends";if(q!==null&&q<l){let le=F.rows==="target"?"":` Click to see what ${te(q)} attends to.`;return`${Q} ${J} to ${te(q)}: ${ie(I()[q])}.${le}`}let se=Array.from(I(),(le,ye)=>({weight:le,cell:ye})).sort((le,ye)=>ye.weight-le.weight).slice(0,3).map(({weight:le,cell:ye})=>`${te(ye)} (${ie(le)})`),ne=r.first>0&&F.columns==="source"?` The class token holds ${ie(D[0])}.`:"",ee=` Equal weights would be ${ie(1/F.column_count)}.`;return`${Q} ${J} most to ${se.join(", ")}.${ne}${ee}`}function pe(F){let q=P(F),Q=F.rows==="target",J=(ee,le)=>d("button",{type:"button","aria-pressed":String(ee===q),onclick:()=>n.set({query:ee})},s&&Q&&Pe(F,ee),le),se=J("mean",Q?`All ${p}s (mean)`:`All ${a} (mean)`),ne=C(F).flatMap(({label:ee,members:[le]})=>Q||le<r.first||le===q?[J(le,ee)]:[]);return[se,...ne]}function Pe(F,q){let Q=o.read(r.pixels),J=V(F,n.state,q)?.subarray(r.first,r.first+l);if(!Q||!J)return null;let se=ae(),ne=d("canvas",{"aria-hidden":"true"}),ee=Dn(r,Q.shape,Al),le=new ge(ne,ee.width,ee.height,se.font);return Xt(le,r,Q,J,Math.max(1e-9,...J),ee,se),ne}function ht(F){let{state:q}=n,Q=c.map(J=>[J.name,ve[J.name]]);return[O?.button??null,Q.length>1?Te("Attention",Q,F.name,J=>{let[se,ne]=c.find(ee=>ee.name===J).default_head;n.set({group:J,layer:se,head:ne,query:null,hover:null,locked:null})}):null,Me("Mean of the heads",q.meanOfHeads,J=>n.set({meanOfHeads:J})),he(()=>`${r.kind}.${F.name}.${q.layer}.${q.meanOfHeads?"mean":q.head}`,()=>H,(J,se)=>{let ne=o.read(r.pixels);!ne||!D||!H||(Do(J,r,ne,I(),G(),H,se),Po(J,r,H,se,N(),null))})]}return{element:S,update:U}}var Rl=80,Dl={"encoder.self":["the token that attends","what it attends to"],"decoder.self":["the token that is read","what it attends to"],"decoder.cross":["the token being generated","the source"]},ii={name:"heads",title:"Look",applies:e=>e.attention.length>0&&!Pn(e),mount:li},ai={name:"heads",title:"Heads",level:2,applies:e=>e.attention.length>0&&Pn(e),mount:li};function li(e){let{doc:t,store:n,blobs:o,live:r}=e,s=Sn(e),i=lt(e),a=new ke(_=>{let[U,W,oe,te]=_.split("|");return r.row(U,Number(W),Number(oe),Number(te))},()=>n.notify(["hover"]),64),l,c=d("div"),m=d("p",{class:"small",role:"status"}),u=t.attention.map(_=>En(e,_,Hl(_),m)),h=d("div",{class:"overview"},c,...u.map(_=>_.element),m),p=d("h2"),f=d("p",{class:"fact"}),g=d("div",{class:"controls"}),b=new ce("Attention of the chosen head. Arrow keys move, Enter pins, Escape releases."),w=d("div",{class:"scroller"},b.element),x=d("canvas",{class:"lens","aria-hidden":"true"}),L=d("div",{class:"stage-row"},w,x),$=d("canvas",{role:"img"}),M=d("span",{class:"small"}),T=d("div",{class:"key"},$,M),A=d("p",{class:"readout",role:"status","aria-live":"polite"}),k=d("p",{class:"small"}),v=d("div",{class:"detail"},p,f,g,A,L,T,k),E=d("section",{class:"heads","aria-label":"Heads"},h,v),S=null,O=null,H=null,D=0,y=()=>n.state.locked??n.state.hover,C=()=>({stretched:n.state.stretched,numbers:n.state.numbers}),R=_=>{let{x:U,y:W}=b.locate(_);return S?n.state.drawing==="lines"?H&&Ks(S,H,W):O&&Ue(S,O,U,W):null};b.element.addEventListener("pointermove",_=>{let[U,W]=[R(_),n.state.hover];(U?.row!==W?.row||U?.column!==W?.column)&&n.set({hover:U})}),b.element.addEventListener("pointerleave",()=>n.set({hover:null})),b.element.addEventListener("click",_=>{let[U,W]=[R(_),n.state.locked],oe=U&&W&&U.row===W.row&&U.column===W.column;n.set({locked:oe?null:U})}),b.element.addEventListener("keydown",_=>{if(!S||!S.rows.length)return;let U=Bl(y(),_.key,S,n.state.drawing==="lines");U!==void 0&&(_.preventDefault(),n.set({locked:U,hover:null}))});function I(_,U){let W=i.read(_,U.layer,U.head);if(W===void 0)return null;if(W)return{codes:W.codes,columns:W.shape[1],isThumbnail:!1};let oe=o.read(_.thumbnails);if(!oe)return null;let[te,B]=oe.shape.slice(2),re=(U.layer*_.heads+U.head)*te*B;return{codes:oe.codes.subarray(re,re+te*B),columns:B,isThumbnail:!0}}function G(_,U){let W=I(U,_);if(!W)return S=null,!1;if(W.isThumbnail){let te=B=>Array.from({length:B},(re,ue)=>({label:"",special:!1,members:[ue]}));return S=qe(W.codes,W.columns,te(W.codes.length/W.columns),te(W.columns)),!0}let oe=je(t,U);return S=qe(W.codes,W.columns,fe(oe.rows,_.words,_.specials),fe(oe.columns,_.words,_.specials)),!1}function P(_){let U=n.state,W=an(t,U.group);if(!(_.size>0&&[..._].every(te=>te==="hover"||te==="locked"))){D=Math.max(260,v.clientWidth);let te=G(U,W);u.forEach((pe,Pe)=>pe.draw(h.clientWidth,s?o.read(t.attention[Pe].thumbnails):null)),s||X(c,Pl(e)),p.textContent=`${rn(t,W)} (${sn(W,U.layer,U.head)})`,f.textContent=Gs(t,W,U.layer,U.head),X(g,...Fl(e,V));let[B,re]=Dl[Fn(W)||W.name!=="decoder.cross"?W.name:"encoder.self"];M.textContent=`${si(U)}. Rows: ${B}. Columns: ${re}.`;let ue=i.problem(W,U.layer,U.head);X(k,...Il(t,W,U,te,ue)),N(U,te)}z(U,W)}function N(_,U){let W=ae();if(T.hidden=_.drawing==="lines",cn(new ge($,256,30,W.font),W,256,_.stretched?null:1),$.setAttribute("aria-label",`Color key: ${si(_)}`),!S)return;let oe=Math.max(S.rows.length,S.columns.length)>96,te=oe&&_.drawing==="heatmap"&&D>760?An:0;x.hidden=te===0;let B=D-(te?te+16:0),re=Xe(L,44*S.rows.length);O=U?{...He(S,B,W,re),labeled:!1,left:12,top:12}:He(S,Math.min(B,oe?720:B),W,re),_.drawing==="heatmap"&&(b.describe(O.left,O.top,O.cell),b.draw(O.width,O.height,ue=>Ae(ue,S,O,W,{...C(),pixelRatio:(window.devicePixelRatio||1)*Ne()})))}function z(_,U){let W=ae(),oe=S&&Fe(y(),S);oe&&j(_,U,oe.row),S&&_.drawing==="lines"?(H=Vs(S,D-6,_.locked),b.draw(H.width,H.height,te=>Ao(te,S,H,W,oe)),b.drawOverlay(H.width,H.height,()=>{})):S&&O&&(b.drawOverlay(O.width,O.height,te=>{oe&&Ze(te,S,O,W,oe,_.locked!==null,C())}),x.hidden||zs(x,S,oe??{row:0,column:0},W)),A.textContent=oe?_l(U,S,oe):S?Ol(S):"Reading the map …"}function j(_,U,W){if(clearTimeout(l),!r.available||!S||S.isExact(W))return;let oe=S.rows[W].members.map(te=>`${U.name}|${_.layer}|${_.head}|${te}`);if(oe.every(te=>a.has(te))){let te=oe.map(B=>a.read(B));te.every(B=>B!==void 0)&&S.refine(W,te)}else l=setTimeout(()=>oe.forEach(te=>a.read(te)),Rl)}function V(){return he(()=>`${n.state.group}.${n.state.layer}.${n.state.head}`,()=>n.state.drawing==="lines"?H:O,(_,U)=>{S&&(n.state.drawing==="lines"?Ao(_,S,H,U,y()):Ae(_,S,O,U,C()))})}return{element:E,update:P}}function si({stretched:e}){return e?"Share of the row's largest weight, square-root scale":"Weight from 0 to 1, square-root scale"}function Pl({doc:e,store:t}){let n=Object.keys(ct).filter(i=>e.attention.some(a=>a.statistics[i]?.flat().some(l=>l!==null))).map(i=>[i,ct[i].title]),{statistic:o}=t.state,r=Math.max(...e.attention.map(i=>So(i,o))),s=`Page color: 0. Full color: ${r.toFixed(r===1?0:1)} ${ct[o].unit}`;return d("div",{},Se("Color",n,o,i=>t.set({statistic:i})),d("p",{class:"small"},`${s.trim()}.`))}function Fl({doc:e,store:t},n){let o=t.state,r={hover:null,locked:null},s=Object.values(e.sequences),i=s.some(l=>l.some((c,m)=>ze(l,m))),a=s.flat().some(l=>l.role==="special");return[Te("Drawing",[["heatmap","Heatmap"],["lines","Lines"]],o.drawing,l=>t.set({drawing:l})),i?Me("Words",o.words,l=>t.set({words:l,...r})):null,a?Me("Special tokens",o.specials,l=>t.set({specials:l,...r})):null,Me("Numbers",o.numbers,l=>t.set({numbers:l})),Me("Stretch rows",o.stretched,l=>t.set({stretched:l})),n()]}function Fn(e){return e.name==="decoder.cross"&&e.row_start>0}function Hl(e){return e.name==="decoder.cross"&&!Fn(e)?"query attends to keys":dr[e.name]}function _l(e,t,n){let o=(p,f)=>p.label?K(p.label):`cell ${f}`,r=o(t.rows[n.row],n.row),s=t.isExact(n.row)?p=>p.toFixed(4):ie,i=We(t,n.row,4).filter(p=>p.weight>=.005).map(p=>`${o(t.columns[p.column],p.column)} ${s(p.weight)}`),a=Fn(e)?`Generating ${r}`:r,l=t.hidden(n.row),c=l>=.01?` Hidden special tokens hold ${s(l)}.`:"",m=i.length?`attends most to ${i.join(", ")}.`:"attends to nothing that is shown.",u=Fn(e)?", the decoder ":" ";if(n.column===null)return`${a}${u}${m}${c}`;let h=s(t.value(n.row,n.column));return`${a} → ${o(t.columns[n.column],n.column)}: ${h}. The row ${m}${c}`}function Ol(e){return e.rows.length?Ee("a row","to read its weights"):"All tokens here are special tokens, which are hidden."}function Il(e,t,n,o,r){let s=t.errors[n.layer]?.[n.head],i=[];if(r&&i.push(r),o&&i.push("This file has only the thumbnail of this head: each cell is the maximum of the weights that it covers."),s!=null){let a=s===0?"Exact.":`Exact to ${s.toExponential(0).replace("e-","e−")}.`;i.push(d("span",{title:"Largest difference between weights × values and what the model computed: max |A·V − output|"},a))}return t.sampled_rows&&i.push(`Statistics and thumbnails are sampled: ${t.sampled_rows} query rows.`),n.words&&i.push("Words: columns are sums over subwords, rows are means."),mr(e)&&i.push(ur),i.flatMap(a=>[a," "])}function Bl(e,t,n,o){if(t==="Escape")return null;let s={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1],PageUp:[-10,0],PageDown:[10,0],Enter:[0,0]}[t];if(!s)return;if(!e)return{row:0,column:o?null:0};let i=(a,l)=>Math.max(0,Math.min(l-1,a));return{row:i(e.row+s[0],n.rows.length),column:o?null:i((e.column??0)+s[1],n.columns.length)}}var Hn=40,xe=90,ui={name:"masks",title:"Masks",level:2,applies:e=>e.attention.length>0&&e.masks.length>0&&(!e.picture||e.masks.some(t=>t.terms.length>0)),mount:Nl},mi={causal:{label:()=>"causal: no later token",reason:"it comes later"},window:{label:e=>`window: fewer than ${e.width} tokens away`,reason:"it is outside the window"},padding:{label:()=>"padding: only valid tokens",reason:"it is padding"},documents:{label:()=>"documents: only the same text",reason:"it belongs to another text"}};function di(e,t,n){return e.kind==="causal"?n<=t:e.kind==="window"?Math.abs(t-n)<(e.width??1/0):e.kind==="padding"?e.valid?.[n]??!0:e.documents?.[t]===e.documents?.[n]}function Nl({doc:e,store:t}){let n=d("p",{class:"fact"}),o=d("div",{class:"controls"}),r=d("p",{class:"readout",role:"status","aria-live":"polite"}),s=new ce("The mask. Arrow keys move."),i=d("div",{class:"card"}),a=d("p",{class:"small"}),l=d("section",{class:"masks","aria-label":"Masks"},d("h2",{},"Who may attend to whom"),n,o,r,d("div",{class:"columns"},d("div",{},d("div",{class:"scroller"},s.element),a),d("div",{},i))),c={cell:20,width:0,height:0,rows:[],columns:[]},m=()=>e.masks.find(f=>f.group===t.state.mask)??e.masks[0],u=()=>t.state.locked??t.state.hover,h=f=>{let{x:g,y:b}=s.locate(f),[w,x]=[Math.floor((b-xe)/c.cell),Math.floor((g-xe)/c.cell)];return w>=0&&x>=0&&w<c.rows.length&&x<c.columns.length?{row:w,column:x}:null};s.element.addEventListener("pointermove",f=>{let[g,b]=[h(f),t.state.hover];(g?.row!==b?.row||g?.column!==b?.column)&&t.set({hover:g})}),s.element.addEventListener("pointerleave",()=>t.set({hover:null})),s.element.addEventListener("click",f=>t.set({locked:t.state.locked?null:h(f)})),s.element.addEventListener("keydown",f=>{if(f.key==="Escape")return t.set({locked:null});let g={ArrowUp:[-1,0],ArrowDown:[1,0],ArrowLeft:[0,-1],ArrowRight:[0,1]}[f.key];if(!g)return;f.preventDefault();let b=u(),w=(L,$)=>Math.max(0,Math.min($-1,L)),x=b?{row:w(b.row+g[0],c.rows.length),column:w((b.column??0)+g[1],c.columns.length)}:{row:0,column:0};t.set({locked:x,hover:null})});function p(){let{state:f}=t,g=m(),b=an(e,g.group),w=je(e,b),x=g.terms.filter(E=>!f.hiddenTerms.includes(E.kind)),[L,$]=[fe(w.rows.slice(0,Hn),!1,!0),fe(w.columns.slice(0,Hn),!1,!0)],M=(Math.max(260,l.clientWidth)-xe-20)/Math.max(1,$.length),T=Math.max(12,Math.min(28,Math.floor(M)));c={cell:T,rows:L,columns:$,width:xe+$.length*T+40,height:xe+L.length*T+4},n.textContent=Wl(g,f);let A=e.masks.map(E=>[E.group,ve[E.group]]);X(o,A.length>1?Te("Attention",A,g.group,E=>t.set({mask:E,hiddenTerms:[],locked:null})):null,...g.terms.map(E=>Me(mi[E.kind].label(E),!f.hiddenTerms.includes(E.kind),S=>t.set({hiddenTerms:S?f.hiddenTerms.filter(O=>O!==E.kind):[...f.hiddenTerms,E.kind]}))),he(()=>`mask.${g.group}`,()=>c,(E,S)=>ci(E,c,x,S,null)));let k=Fe(u(),c);s.describe(xe,xe,T),s.draw(c.width,c.height,(E,S)=>ci(E,c,x,S,k)),s.drawOverlay(c.width,c.height,()=>{}),r.textContent=k?Ul(L,$,x,k):Ee("a cell","to read whether its row may attend to its column"),i.hidden=g.leak===null,g.leak&&X(i,...Gl(g.leak));let v=Math.max(w.rows.length,w.columns.length)>Hn;a.textContent=v?`The first ${Hn} tokens are shown.`:""}return{element:l,update:p}}function ci(e,t,n,o,r){let{cell:s,rows:i,columns:a}=t;i.forEach((l,c)=>{let m=xe+c*s,u=c===r?.row?o.accent:o.muted;e.text(xe-6,m+s/2,me(l.label,12,o.font,xe-10),{fill:u,size:12,anchor:"end"}),a.forEach((h,p)=>{let f=n.every(b=>di(b,c,p)),g=xe+p*s;f?e.rect(g+1,m+1,s-2,s-2,{fill:o.hue,radius:2}):e.rect(g+s/2-1.5,m+s/2-1.5,3,3,{fill:o.rule,radius:1.5})})}),a.forEach((l,c)=>{let m=c===r?.column?o.accent:o.muted,u=me(l.label,12,o.font,xe-10),[h,p]=[xe+(c+.5)*s,be(u,12,o.font)<=s-2];p?e.text(h,xe-10,u,{fill:m,size:12,anchor:"middle"}):e.text(h,xe-6,u,{fill:m,size:12,angle:-53})}),r&&r.column!==null&&e.rect(xe+r.column*s,xe+r.row*s,s,s,{stroke:o.accent,width:2.5})}function Wl(e,t){if(e.terms.length===0)return"No mask: every row attends to every column.";let n=e.terms.filter(o=>t.hiddenTerms.includes(o.kind));return n.length?`What if: no ${n.map(o=>o.kind).join(", no ")} mask (the model does use it).`:e.terms.length===1&&e.terms[0].kind==="causal"?"Causal: a token attends to itself and to earlier tokens only.":`A row attends to a column if all terms allow it: ${e.terms.map(o=>o.kind).join(", ")}.`}function Ul(e,t,n,o){let[r,s]=[o.row,o.column??0],i=n.filter(l=>!di(l,r,s)),a=[K(e[r].label),K(t[s].label)];return i.length===0?`${a[0]} may attend to ${a[1]}.`:`${a[0]} may not attend to ${a[1]}: ${i.map(l=>mi[l.kind].reason).join(" and ")}.`}function Gl(e){let t=s=>s<.001?s.toExponential(1):s.toFixed(2),n=e.later_change===0?"The test shows nothing: replacing later tokens changed no prediction.":e.change<1e-4?"No future leaks.":"The future leaks!",o=e.prefix===1?"First prediction":`First ${e.prefix} predictions`,r=e.change===0?`${o} unchanged when the rest is replaced`:`${o} ${e.change<1e-4?"unchanged":"changed"} when the rest is replaced (by up to ${t(e.change)})`;return[d("p",{},d("strong",{},`Leak test: ${n}`)),d("p",{},`${r}.`),d("p",{class:"small"},`The model read the same beginning with ${e.replaced} other tokens after it; their own predictions changed by up to ${t(e.later_change)}. Numbers are changes of a log-probability.`)]}var hi=20,ut=46,fi=56,zl=6,bi={name:"merges",title:"BPE merges",level:2,applies:e=>e.merges!==null,mount:jl};function Fo(e,t,n){let o=t===0?e.start:e.steps[t-1].words,r=t===0?null:e.steps[t-1].left+e.steps[t-1].right,s=[],i=0;return o.forEach((a,l)=>{let c=fi;for(let m of a){let u=Y(m,24),h={text:u,x:c,y:l*ut+4,width:be(u,hi,n.font)+20,isNew:m===r};s.push(h),c+=h.width+zl}i=Math.max(i,c)}),{boxes:s,width:i+4,height:o.length*ut+4}}function pi(e,t,n,o){t.counts.forEach((r,s)=>e.text(fi-12,s*ut+4+(ut-8)/2,`${r} ×`,{fill:o.muted,anchor:"end"}));for(let{text:r,x:s,y:i,width:a,isNew:l}of n.boxes){let c=i+(ut-8)/2;e.rect(s,i,a,ut-8,l?{fill:o.hue,opacity:.18,radius:6}:{radius:6}),e.rect(s,i,a,ut-8,{stroke:l?o.hue:o.rule,width:1.5,radius:6});let m={fill:l?o.hue:o.ink,size:hi,weight:l?600:400};e.text(s+a/2,c,r,{...m,anchor:"middle"})}}function jl({doc:e,store:t}){let n=e.merges,o=d("p",{class:"fact"}),r=d("div",{class:"chips",role:"group","aria-label":"Merges"}),s=d("p",{class:"readout",role:"status","aria-live":"polite"}),i=new ce("Words as symbols. Right and left arrow keys go one merge on or back."),a=p=>t.set({merge:Math.max(0,Math.min(n.steps.length,p))});i.element.addEventListener("keydown",p=>{let f={ArrowRight:1,ArrowDown:1,ArrowLeft:-1,ArrowUp:-1}[p.key];f&&(p.preventDefault(),a(t.state.merge+f))}),i.element.addEventListener("click",()=>a(t.state.merge+1));let l=d("button",{type:"button",onclick:()=>a(t.state.merge-1)},"Back"),c=d("button",{type:"button",onclick:()=>a(t.state.merge+1)},"Next merge"),m=he(()=>`merge.${t.state.merge}`,()=>Fo(n,t.state.merge,ae()),(p,f)=>pi(p,n,Fo(n,t.state.merge,f),f)),u=d("section",{class:"merges","aria-label":"BPE merges"},d("h2",{},"How a BPE vocabulary is learned"),o,d("div",{class:"controls"},l,c,m),d("div",{class:"scroller"},i.element),s,d("h3",{},"Merges in their order"),r);function h(p){let f=t.state.merge,g=Fo(n,f,ae());o.textContent=ql(n,f);let b=new Set((f===0?n.start:n.steps[f-1].words).flat()),w=g.boxes.length;s.textContent=`${w} symbols spell the ${n.words.length} words, ${b.size} of them distinct.`,i.draw(g.width,g.height,(x,L)=>pi(x,n,g,L)),l.disabled=f===0,c.disabled=f===n.steps.length,X(r,...n.steps.map(({left:x,right:L},$)=>d("button",{type:"button","aria-pressed":String($+1===f),onclick:()=>a($+1)},Y(x+L,24))))}return{element:u,update:h}}function ql(e,t){if(t===0)return"Before the first merge every character is a symbol; ▁ ends a word.";let{left:n,right:o,count:r}=e.steps[t-1],s=`${K(Y(n,24))} + ${K(Y(o,24))}`,i=r===1?"once":r===2?"twice":`${r} times`;return`Merge ${t} of ${e.steps.length}: ${s} becomes ${K(Y(n+o,24))}, a most frequent pair: ${i}.`}function gi(e,t){let[n,o]=[e.width,e.base],r=new Float64Array(t*n);for(let s=0;s<t;s++)for(let i=0;i<n/2;i++){let a=s/o**(2*i/n),[l,c]=e.interleaved?[2*i,2*i+1]:[i,i+n/2];r[s*n+l]=Math.sin(a),r[s*n+c]=Math.cos(a)}return{rows:t,columns:n,values:r}}function Ho(e,t){let n=e.key_dim/2,o=new Float64Array(t*n);for(let r=0;r<t;r++)for(let s=0;s<n;s++)o[r*n+s]=Math.cos(r*e.base**(-s/n));return{rows:t,columns:n,values:o}}function wi(e,t){let n=Ho(e,t);return Array.from({length:t},(o,r)=>{let s=0;for(let i=0;i<n.columns;i++)s+=n.values[r*n.columns+i];return[r,s/n.columns]})}function _o({rows:e,columns:t,values:n}){let o=new Float64Array(e*e);for(let r=0;r<e;r++)for(let s=0;s<e;s++){let i=0;for(let a=0;a<t;a++)i+=n[r*t+a]*n[s*t+a];o[r*e+s]=i}return{rows:e,columns:e,values:o}}function Oo(e,t){return Array.from({length:t/2},(n,o)=>[o,2*Math.PI*e**(2*o/t)])}var xi={name:"positions",title:"Positions",level:2,applies:e=>e.positions.some(t=>t.kind!=="none"),mount:Kl},_n=64,Vl={none:"No position encoding.",sinusoidal:"Sinusoidal: every position has a vector of sines and cosines, from short to long wavelengths.",learned:"Learned: every position has a trained vector.",rotary:"Rotary: queries and keys are turned by an angle that grows with the position, so that a weight depends on the distance.",alibi:"ALiBi: each head subtracts slope × distance from its scores.",relative:"Relative: each head adds a trained bias for each distance."};function Kl({doc:e,store:t,blobs:n}){let o=d("p",{class:"fact"}),r=d("div",{class:"controls"}),s=d("div",{class:"columns figures"}),i=d("p",{class:"small"}),a=d("section",{class:"positions","aria-label":"Positions"},d("h2",{},"How the model knows the order"),o,r,s,i),l=e.positions.map(u=>[u.stack,u.stack==="encoder"?"Encoder":"Decoder"]);function c(){let u=e.positions.find(b=>b.stack===t.state.stack)??e.positions[0];o.textContent=Vl[u.kind],X(r,l.length>1?Te("Stack",l,u.stack,b=>t.set({stack:b})):null);let h=u.max_positions===null?"No length limit.":`At most ${u.max_positions} tokens; this text has ${u.length}.`;i.textContent=`Blue is above zero, purple below. ${u.kind==="none"?"":h}`;let p=a.clientWidth,f=p>1e3?Math.min(440,(p-84)/3):Math.min(440,Math.max(240,p-12)),g=Xl(u,f,b=>n.read(b));X(s,...g.map(b=>m(b,f)))}function m(u,h){let p=new ce(u.title,{role:"img",tabindex:null});p.draw(u.width,u.height,g=>u.draw(g,ae())),p.overlay.remove();let f=d("div",{},d("h3",{},u.title),p.element);return f.style.width=`${h}px`,f}return{element:a,update:c}}function Xl(e,t,n){if(e.kind==="sinusoidal"){let o=gi(e,_n);return[Qt("Vectors: rows are positions, columns dimensions","dimension",o,t,e.length),Qt("PE·PEᵀ: how alike two positions are","position",_o(o),t,e.length),Yt("Wavelength of each pair of dimensions",["pair of dimensions","tokens (log scale)"],[{label:"",points:Oo(e.base,e.width)}],t,!0)]}if(e.kind==="learned"&&e.vectors){let o=n(e.vectors);if(!o)return[];let[r,s]=o.shape,i={rows:r,columns:s,values:Float64Array.from(o.codes,a=>a*o.scale)};return[Qt("Vectors: rows are positions, columns dimensions","dimension",i,t,e.length),Qt("PE·PEᵀ: how alike two positions are","position",_o(i),t,e.length)]}if(e.kind==="rotary")return[Qt("Cosine of the angle: rows are positions, columns pairs of dimensions","pair of dimensions",Ho(e,_n),t,e.length),Yt("Mean of cos(angle) by distance: turned vectors grow apart",["distance in tokens","cosine"],[{label:"",points:wi(e,_n)}],t),Yt("Wavelength of each pair of dimensions",["pair of dimensions","tokens (log scale)"],[{label:"",points:Oo(e.base,e.key_dim)}],t,!0)];if(e.kind==="alibi"&&e.slopes){let o=Array.from({length:_n},(s,i)=>i),r=e.slopes.map((s,i)=>({label:`head ${i+1}`,points:o.map(a=>[a,-s*a])}));return[Yt("Bias by distance, one line per head",["distance in tokens","bias"],r,t)]}if(e.kind==="relative"&&e.curves&&e.offsets){let o=n(e.curves);if(!o)return[];let[r,s,i]=o.shape;return Array.from({length:r},(a,l)=>{let c=Array.from({length:s},(u,h)=>({label:`head ${h+1}`,points:e.offsets.map((p,f)=>[p,o.codes[(l*s+h)*i+f]])})),m=r>1?`Bias by offset (column − row), layer ${l+1}`:"Bias by offset (column − row), one line per head";return Yt(m,["offset in tokens","bias"],c,t)})}return[]}function Qt(e,t,n,o,r){let s=Math.max(1,Math.min(14,(o-40)/Math.max(n.columns,n.rows))),i=Math.max(n.columns*s,Math.min(240,o-40)),[a,l]=[32,22];return{title:e,width:a+i+4,height:l+n.rows*s+18,draw(c,m){let u=n.values.reduce((f,g)=>Math.max(f,Math.abs(g)),1e-12),h=new Uint32Array(n.values.length);n.values.forEach((f,g)=>h[g]=Qe(m.page,f<0?m.minus:m.hue,Math.abs(f)/u)),c.pixels(a,l,i,n.rows*s,{width:n.columns,height:n.rows,data:h}),c.rect(a-.5,l-.5,i+1,n.rows*s+1,{stroke:m.rule});let p={fill:m.muted,size:11};c.text(0,9,"position ↓",p),c.text(a+i,9,`${t} →`,{...p,anchor:"end"});for(let f=0;f<n.rows;f+=16)c.text(a-6,l+(f+.5)*s,String(f),{fill:m.muted,size:11,anchor:"end"});if(r<n.rows){let f=l+r*s;c.path(`M${a} ${f}h${i}`,{stroke:m.ink,width:1,dash:"4 3"}),c.text(a,l+n.rows*s+11,`dashed: the last of ${r} tokens`,{fill:m.muted,size:11})}}}}function Yt(e,[t,n],o,r,s=!1){let[i,a,l,c,m]=[52,58,24,40,256],u=$=>s?Math.log10($):$,h=o.flatMap($=>$.points.map(([M])=>M)),p=o.flatMap($=>$.points.map(([,M])=>u(M))),[f,g,b,w]=[Math.min(...h),Math.max(...h),Math.min(...p,s?1/0:0),Math.max(...p)],x=$=>i+($-f)/(g-f||1)*(r-i-a),L=$=>l+(1-(u($)-b)/(w-b||1))*(m-l-c);return{title:e,width:r,height:m,draw($,M){let T={fill:M.muted,size:11};$.text(4,8,n,T),$.text(r-a,m-8,`${t} →`,{...T,anchor:"end"});for(let v=0;v<=4;v++){let E=b+(w-b)*v/4,S=l+(1-v/4)*(m-l-c);$.path(`M${i} ${S}H${r-a}`,{stroke:M.rule});let O=s?Math.round(10**E).toLocaleString("en"):Number(E.toPrecision(2)).toString().replace("-","−");$.text(i-6,S,O,{...T,anchor:"end"});let H=f+(g-f)*v/4;$.text(x(H),m-26,String(Math.round(H)).replace("-","−"),{...T,anchor:"middle"})}let A=-1/0;o.map(v=>({curve:v,end:L(v.points[v.points.length-1][1])})).sort((v,E)=>v.end-E.end).forEach(({curve:v,end:E},S)=>{let O=v.points.map(([H,D],y)=>`${y?"L":"M"}${x(H).toFixed(1)} ${L(D).toFixed(1)}`).join("");$.path(O,{stroke:M.hue,width:2,opacity:.45+.55*(S+1)/o.length}),!(!v.label||E-A<12)&&(A=E,$.text(r-a+6,E,v.label,T))})}}}var Ql=200,yi=5,ki={name:"predictions",title:"Predictions",applies:e=>e.predictions.length>0,mount:({doc:e})=>{let{told:t,untagged:n}=Re(e),o=i=>{let a=i.slice(0,Ql).map(l=>Zl(e,e.predictions[l]));return d("div",{class:"cards"},...a)},r=e.predictions.map((i,a)=>a).filter(i=>!t.includes(i));return{element:d("section",{class:"predictions","aria-label":"Predictions"},d("h2",{},"What the model predicted"),d("p",{class:"fact"},Yl(e)),o(t),n>0?d("details",{class:"transcript"},d("summary",{},$t(n)),o(r)):null),update:()=>{}}}};function Yl(e){let{told:t}=Re(e),n=t.map(i=>e.predictions[i]),o=n.reduce((i,a)=>(a.probabilities[0]??0)>(i.probabilities[0]??0)?a:i);if(!o.labels.length)return"Candidates with their probabilities, best first.";let r=K(Y(o.labels[0].trim()||"␣",24));return`${n.length>1?`The surest of ${n.length} predictions`:"The prediction"}: ${r}, probability ${ie(o.probabilities[0])}.`}function Zl(e,t){let n=t.labels.map((s,i)=>{let a=d("span",{class:"bar"});return a.style.width=`max(1px, calc(${t.probabilities[i]} * (100% - 56px)))`,[d("dt",{dir:"auto"},Y(s.trim()||"␣",24)),d("dd",{},a,ie(t.probabilities[i]))]}),o=e.predictions.length===1||n.length<=yi+1?n.length:yi,r=n.slice(o);return d("div",{class:"card"},d("h3",{},Jl(e,t.position)),d("dl",{},...n.slice(0,o).flat()),r.length?d("details",{},d("summary",{class:"small"},`${r.length} more`),d("dl",{},...r.flat())):null)}function Jl(e,t){if(t===null)return e.picture?`The ${e.picture.kind}`:"The whole text";let n=e.sequences.source?.[t];return`Position ${t}: ${K(de(n))}`}var Zt=256,ec=6,tc=.75,nc=.03,oc=["decoder.cross","decoder.self","encoder.self"],Et=e=>(e.sequences.target??[]).findIndex(t=>t.logprob!==void 0),vi=e=>e.merges===null&&(Et(e)>=0||e.predictions.some(t=>t.labels.length>0));function Io(e,t){let n=Et(e),o=n>=0,r=rc(e,t,n),s=fe(r.columns,!0,!1),i=o?ic(e,n):lc(e);i.forEach(p=>{let f=r.row(o?p.lead-n:p.prediction);if(!f)return;let g=s.map(({members:w})=>w.reduce((x,L)=>x+f[L],0)),b=g.reduce((w,x)=>w+Math.abs(x),0)||1;p.shares=g.map(w=>r.kind==="attribution"?w/b:w),r.kind==="attention"&&r.columns.forEach((w,x)=>p.special+=w.role==="special"?f[x]:0)});let a=o&&r.group==="decoder.self",l=s.map(({members:p})=>$i(p.map(f=>r.columns[f]))),c={inputs:s,areWords:l,outputs:i,isWritten:o,looksBack:a,evidence:r.kind},u=!o&&i.length===1?uc(e,c):cc(e,c),h=o?"":$t(Re(e).untagged);return h&&u.length&&(u[u.length-1].text+=` ${h}`),{...c,steps:u}}function rc(e,t,n){let{attribution:o,sequences:r,reads:s}=e;if(n<0&&o&&o.outputs.length>=e.predictions.length){let h=t(o.methods.integrated_gradients),p=o.source_columns+o.target_columns;return{kind:"attribution",columns:[...r.source??[],...r.target??[]].slice(0,p),row:g=>h?.codes.slice(g*p,(g+1)*p)??null}}let i=e.attention.find(({name:h})=>h===(s?.group??oc.find(p=>sc(e,p))));if(!i)return{kind:null,columns:[],row:()=>null};let a=i.column_count,l=(r[i.columns]??[]).slice(0,a),c=(h,p)=>{let f=h.slice(p*a,(p+1)*a);return f instanceof Uint8Array?Float32Array.from(f,g=>Ie[g]):f},m=t(s?s.weights:i.maps[i.default_head.join(".")]??i.thumbnails),u=h=>{if(!m||m.shape.length!==2)return null;if(s)return h<m.shape[0]?c(m.codes,h):null;let p=n>=0?n+h-1:e.predictions[h].position??0;return c(m.codes,p)};return{kind:"attention",group:i.name,columns:l,row:u}}var sc=(e,t)=>e.attention.some(n=>n.name===t),$i=e=>e.some(({text:t})=>/[\p{L}\p{N}]/u.test(t)),Mi=e=>Math.exp(e??-1/0);function ic(e,t){let n=e.sequences.target,o=fe(n.slice(t),!0,!1);return(o.length<3?fe(n.slice(t),!1,!1):o).slice(0,Zt).map(({label:s,members:i})=>{let a=i.map(p=>t+p),l=a.map(p=>({label:de(n[p]),probability:Mi(n[p].logprob)})),c=l.reduce((p,f)=>p*f.probability,1),m=a.find(p=>n[p].text.trim()!=="")??a[0],u=$i(a.map(p=>n[p])),h=ac(e,m);return{label:s,places:a,lead:m,prediction:-1,probability:c,tokens:l,isWord:u,bars:h,shares:[],special:0}})}function ac(e,t){let n=e.sequences.target[t],o=t-(e.next?.first??0),r=(e.next?.tokens[o]??[]).map((s,i)=>({label:de(e.vocabulary[s]),probability:e.next.probabilities[o][i],isChosen:s===n.id}));return r.some(s=>s.isChosen)?r:[...r,{label:de(n),probability:Mi(n.logprob),isChosen:!0}]}function lc(e){let{told:t}=Re(e);return t.slice(0,Zt).map(n=>{let{position:o,labels:r,probabilities:s}=e.predictions[n],i=r.map(h=>Y(h.trim()||"␣",24)),a=i.map((h,p)=>({label:h,probability:s[p],isChosen:p===0})).slice(0,8),l=i[0]??"–",c=s[0]??0;return{label:l,places:o===null?[]:[o],lead:-1,prediction:n,probability:c,...{tokens:[],isWord:!0,bars:a,shares:[],special:0}}})}function Li(e){let t=0;return e.map((n,o)=>({size:Math.abs(n),input:o})).filter(({size:n})=>n>=nc).sort((n,o)=>o.size-n.size).slice(0,ec).filter(({size:n})=>(t+=n)-n<tc).map(({input:n})=>n)}function cc(e,t){return t.outputs.map((n,o)=>{let r=Li(n.shares);return{output:o,isWritten:!0,inputs:r,text:mc(e,t,n,r)}})}function uc(e,t){let[n]=t.outputs,o=Li(n.shares);e.picture?.kind==="spectrogram"&&o.sort((a,l)=>a-l);let r=o.map((a,l)=>({output:0,isWritten:!1,inputs:o.slice(0,l+1),text:`${Ti(e,t,n,a)}.`.replace(/^it/,"It")})),i=`It decides: ${n.places.length?mt(e,n.places[0]):"the answer"} is ${K(n.label)} (${Z(n.probability)} sure).`;return[...r,{output:0,isWritten:!0,inputs:o,text:i}]}function mc(e,t,n,[o]){let r=`${K(n.label)} (${Z(n.probability)} sure)`,s=o===void 0?"":Ti(e,t,n,o);if(!t.isWritten)return`It decides: ${mt(e,n.places[0])} is ${r}${s?`; ${s}`:""}.`;let i=n.special>(n.shares[o]??0),a=i?`It reads mostly special tokens (${Z(n.special)})${s?`, then ${At(e,t,o)} (${Z(n.shares[o])}),`:""}`:`It${s.slice(2)}`;return s||i?`${a} and writes ${r}.`:`It writes ${r}.`}function Ti(e,t,n,o){let[r,s]=[At(e,t,o),n.shares[o]],i=Z(Math.abs(s));return t.evidence==="attribution"?`${r} speaks ${s>0?"for":"against"} it (${i} of all effects)`:`it ${t.looksBack?"looks back at":"reads"} ${r} (${i})`}function At(e,{inputs:t,looksBack:n},o){let{label:r}=t[o];return!e.picture||n?K(r):e.picture.kind==="image"?r:`the sound at ${r}`}function mt(e,t){let n=e.sequences.source?.[t];if(n?.role!=="special"){let r=e.sequences.source??[];return K(we(r.filter(({word:s})=>s!==null&&s===n?.word))||"?")}let o=e.predictions.filter(r=>r.position!==null);return o.length>1?`gap ${o.findIndex(r=>r.position===t)+1}`:"the gap"}function Ei(e,t){return[...t.isWritten?[dc(e,t),pc(t),...hc(e,t),fc(e),bc(e)]:t.outputs.length===1?[gc(e,t),...Si(e,t),yc(e)]:[wc(e,t),xc(e,t),...Si(e,t).slice(0,1)],kc(e)].filter(o=>o!==null)}var dt=e=>e.reduce((t,n,o)=>n>e[t]?o:t,0),Ai=(e,t)=>t.evidence==="attribution"?"attribution":e.picture&&!t.looksBack?e.picture.kind:e.hypotheses.length?"alignment":"heads";function dc(e,t){let n=t.outputs.flatMap(({shares:c,isWord:m},u)=>c.map((h,p)=>({output:u,input:p,share:h,rank:m&&t.areWords[p]?1+h:h})));if(!n.length)return null;let{output:o,input:r,share:s}=n[dt(n.map(c=>c.rank))];if(s<=0)return null;let i=t.looksBack?"it looks back at":"it reads",a=`The clearest link: to write ${K(t.outputs[o].label)} ${i} ${At(e,t,r)} (${Z(s)} of the attention).`,l={place:t.outputs[o].places[0],column:t.inputs[r].members[0],share:s};return{kind:"link",text:a,numbers:l,output:o,view:Ai(e,t)}}function pc({outputs:e}){let t=e.filter(({isWord:i})=>i),n=t.length?t:e;if(e.length<2)return null;let o=n[dt(n.map(i=>i.probability))],r=`Surest: ${K(o.label)} (${Z(o.probability)}).`,s={place:o.places[0],probability:o.probability};return{kind:"surest",text:r,numbers:s,output:e.indexOf(o)}}function hc(e,{outputs:t}){let n=e.sequences.target,o=t.flatMap(x=>x.places);if(!o.length)return[];let r=o[dt(o.map(x=>-(n[x].logprob??-1/0)))],[s,i]=[n[r],r-(e.next?.first??0)],a=Math.exp(s.logprob??-1/0),l=t.findIndex(x=>x.places.includes(r)),c=`${K(de(s))} (${Z(a)})`,m={output:l,view:e.sampling?"sampling":"search"},[u,h]=[e.next?.tokens[i],e.next?.probabilities[i]];if(!u||!h||u.length<2)return[{kind:"surprise",text:`Least sure token: ${c}.`,numbers:{place:r,probability:a},...m}];let p=u[0]===s.id,[f,g]=[u[+p],h[+p]],b=`${K(de(e.vocabulary[f]))} (${Z(g)})`;return[{kind:"surprise",text:p?`Least sure token: ${c}. It was still the first choice, before ${b}.`:`Most surprising token: ${c}. The model preferred ${b}.`,numbers:{place:r,probability:a,other:f,otherProbability:g},...m}]}function fc(e){let[t,n]=[Et(e),e.sequences.target];if(!e.next)return null;let o=e.next.tokens.map((c,m)=>c[0]===n[t+m]?.id),[r,s]=[o.filter(Boolean).length,o.length],i=s-r,a=e.sampling?"the dice decided":"the search gave them up for a likelier text";return{kind:"favorites",text:i===0?`Every token was the model's first choice${e.sampling?", although it was drawn at random":""}.`:`${i} of ${s} tokens ${i===1?"was":"were"} not the model's first choice: ${i===1&&!e.sampling?"the search gave it up for a likelier text":a}.`,numbers:{favorites:r,total:s},view:e.sampling?"sampling":"search"}}function bc(e){let{search:t}=e;if(!t||!(Number(t.settings.beam_size)>1))return null;let n=i=>t.total[i]??-1/0,o=i=>i===0?[]:[...o(t.parent[i]),t.token[i]],r=i=>K(we(o(i).map(a=>e.vocabulary[a]),60)||"…");for(let i=t.winner_step-1;i>=1;i--){let a=t.lineage[i],l=t.step.flatMap((x,L)=>x===i&&t.status[L]!=="finished"&&n(L)>n(a)?[L]:[]);if(!l.length)continue;let c=l.reduce((x,L)=>n(L)>n(x)?L:x),[m,u]=[Math.exp(n(a)),Math.exp(n(c))],h=i===1?"1 token":`${i} tokens`,[p,f]=[Z(u),Z(m)],g=p===f?`was just ahead of ${r(a)}`:`(${p}) was ahead of ${r(a)}`,b=`The search changed its mind: after ${h} ${r(c)} ${g} (${p===f?"both ":""}${f}).`,w={step:i,rank:l.length+1,probability:m,leaderProbability:u};return{kind:"beam",text:b,numbers:w,view:"search"}}return t.winner_step<2?null:{kind:"beam",text:"The search never changed its mind: the winner was ahead after every token.",numbers:{step:0},view:"search"}}function Ci({bars:e,label:t,probability:n}){let o=`${K(t)} (${Z(n)})`;if(e.length<2)return{text:o,numbers:{probability:n}};let r=e[1].probability,s=n/r,i=s>=9.95?Math.round(s).toLocaleString("en"):s.toFixed(1);return{text:`${o}, ${i} times as probable as ${K(e[1].label)} (${Z(r)})`,numbers:{probability:n,second:r}}}function gc(e,{outputs:[t]}){let{text:n,numbers:o}=Ci(t),[r]=t.places,s=r!==void 0&&e.sequences.source?.[r]?.role==="special";return{kind:"decision",text:`${r===void 0?"It says":s?`In ${mt(e,r)} it puts`:`${mt(e,r)} is`} ${n}.`,numbers:o,output:0,view:"predictions"}}function wc(e,{outputs:t}){let n=dt(t.map(l=>l.probability)),{label:o,places:r,probability:s,prediction:i}=t[n];return{kind:"surest",text:`Surest: ${mt(e,r[0])} is ${K(o)} (${Z(s)}).`,numbers:{prediction:i,probability:s},output:n,view:"predictions"}}function xc(e,{outputs:t}){let n=dt(t.map(a=>-a.probability)),{text:o,numbers:r}=Ci(t[n]);return{kind:"doubt",text:`Least sure: ${mt(e,t[n].places[0])} is ${o}.`,numbers:{prediction:t[n].prediction,...r},output:n,view:"predictions"}}function Si(e,t){let n=Ai(e,t),o=t.outputs.flatMap(({shares:b},w)=>b.map((x,L)=>({output:w,input:L,share:x})));if(!o.length)return[];let r=({output:b,input:w,share:x})=>({output:b,view:n,numbers:{prediction:t.outputs[b].prediction,column:t.inputs[w].members[0],share:Math.abs(x)}}),s=o.map(b=>b.share),i=o[dt(s)],a=At(e,t,i.input),l=K(t.outputs[i.output].label);if(t.evidence==="attribution"){let b=o[dt(s.map(x=>-x))],w=(x,L,$)=>`${At(e,t,x)} speaks most ${$} ${l}: ${Z(Math.abs(L))} of the effect of all words.`;return[...i.share>0?[{kind:"for",text:w(i.input,i.share,"for"),...r(i)}]:[],...b.share<0?[{kind:"against",text:w(b.input,b.share,"against"),...r(b)}]:[]]}let c=t.inputs.length,m=e.picture?e.picture.kind==="image"?"patches":"time steps":"words",h=[...t.outputs[i.output].shares].sort((b,w)=>w-b),p=h.reduce((b,w)=>b+w,0)/2,[f,g]=[0,0];for(;f<c&&g<p;)g+=h[f++];return[{kind:"for",text:`For ${l} it reads ${a} most: ${Z(i.share)} of the attention.`,...r(i)},{kind:"half",text:`${f} of ${c} ${m} ${f===1?"holds":"hold"} half of the attention on them.`,numbers:{needed:f,count:c},output:i.output,view:n}]}function yc(e){let[{position:t,probabilities:n}]=e.predictions;if(t!==null||n.length<2)return null;let o=n.reduce((i,a)=>a>0?i-a*Math.log(a):i,0),r=Math.exp(o);return{kind:"choices",text:`It is as uncertain as a fair choice among ${r.toFixed(1)} of ${n.length} labels.`,numbers:{choices:r},view:"predictions"}}function kc(e){let t=Ke(e,e.attention);if(!t||!e.ablation)return null;let{baseline:n,output:o,texts:r}=e.ablation,{group:s,place:i,delta:a}=t,[l,c]=i,[m,u]=[Math.exp(n),Math.exp(n+a)],p={kind:"head",numbers:{group:e.attention.indexOf(s),layer:l,head:c,delta:a,before:m,after:u},view:"break"};if(a>=0)return{...p,text:`No single head is needed: without any one of them ${o} stays at least as probable.`};let f=`layer ${l+1}, head ${c+1} of the ${ve[s.name].toLowerCase()}`,g=Number(Math.exp(-a).toPrecision(2)),b=g<1e9?g.toLocaleString("en"):g.toExponential(0),[w,x]=[Z(m),Z(u)];if(m>=.001?w===x:g<1.05)return{...p,text:`No single head matters much: without any one of them ${o} stays about as probable.`};let L=m>=.001?`the probability of ${o} falls from ${w} to ${x}`:`${o} is ${b} times less probable`,$=r[`${s.name}.${l}.${c}`],M=$!==void 0&&$!==e.output,T=M?Y($.trim(),80)||"nothing":"",A=M?`, and it writes ${K(T)}`:"",k=/[.!?…]$/.test(T)?"":".";return{...p,text:`The head that matters most: ${f}. Without it ${L}${A}${k}`}}var Bo=1240,vc=160,Ct=25,No=9,pt=26,Ri=70;function Di(e,t,n,o,r,s,i){let[a,l]=[n,o],c=e.map(m=>{let u=Math.max(t,Math.min(r,be(m,t,i)*1.1+t*.6));a>n&&a+u>n+r&&([a,l]=[n,l+s]);let h={x:a,y:l,width:u,height:t*1.6};return a+=u+t*.4,h});return{boxes:c,bottom:c.length?l+t*1.6:o}}function $c(e,t,n,o){if(t<700)return 17;let r=s=>e.every(i=>i.length<=40&&i.reduce((a,l)=>a+be(l.label,s,o)*1.1+s,0)<=n);return(t>=Bo?[36,30,26,22]:[28,24,20]).find(r)??(t>=Bo?22:20)}function Wo(e,t,n,o,r){let s=o>=760,i=s?Math.min(460,o*.34):Math.min(420,o-4),a=s?o-i-48:o-4,l=e.picture!==void 0&&!t.looksBack,c=[l?[]:t.inputs,t.outputs],m=$c(c,o,a,r.font),u=[],h=[],p=null,f=0,g=t.inputs.length>0;if(g&&u.push([t.looksBack?"It looks back at":"It reads",2,10]),l&&n){let v=e.picture;p=v.kind==="image"?Dn(v,n.shape,Math.min(o>=Bo?520:360,a)):Rn(v,n.shape,a);let{kind:E}=v;p={...p,picture:{...p.picture,x:E==="image"?2:46,y:pt}},h=t.inputs.map((S,O)=>St(v,p,p.picture,O)),f=pt+p.picture.height}else if(g&&!l){let v=Math.max(0,t.inputs.length-vc),E=t.inputs.slice(v).map(O=>O.label),S=Di(E,m,2,pt,a,m*2,r.font);h=[...Array(v).fill(null),...S.boxes],f=S.bottom}let b=g?56:0;u.push([t.isWritten?"It writes":"It decides",2,f+b+10]);let w=t.outputs.map(v=>v.label),x=Di(w,m,2,f+b+pt,a,m*2.6,r.font);f=x.bottom+m*1.1;let L=Math.min(No,Math.max(1,...t.outputs.map(v=>v.bars.length))),$=pt+L*Ct+22,M=[...p?[p.picture]:h,...x.boxes],T=Math.max(...M.map(v=>v?v.x+v.width:0)),A=s?{x:Math.min(a,Math.max(T,420))+44,y:0,width:i,height:$}:{x:2,y:f+20,width:i,height:$},k=Math.max(f,A.y+A.height)+6;return{size:m,inputs:h,outputs:x.boxes,bars:A,headings:u,picture:p,width:o,height:k}}function On(e,t,n,o,r,s,i,a=1){let l=n.outputs[o.output];Mc(e,t,n,o,r,s,i);let c=s.outputs[o.output];for(let m of o.inputs){let u=s.inputs[m];if(!u)continue;let h=l.shares[m],p=s.picture?[u.x+u.width/2,u.y+u.height/2]:[u.x+u.width/2,u.y+u.height],f=kn(p,[c.x+c.width/2,c.y]),g={stroke:h>0?s.picture?i.tint:i.hue:i.minus},b=Math.abs(h)*a;e.path(f,{...g,width:1+13*b,opacity:.15+.55*b})}for(let[m,u,h]of s.headings)e.text(u,h,m,{fill:i.muted,size:13});Tc(e,n,o,s,i),o.isWritten&&Sc(e,n,o,s,i,a)}function Mc(e,t,n,o,r,s,i){let{shares:a,places:l}=n.outputs[o.output];if(s.picture&&r){let c=Float32Array.from(n.inputs,(u,h)=>o.isWritten||o.inputs.includes(h)?Math.max(0,a[h]??0):0),m=Math.max(1e-9,...a);Xt(e,t.picture,r,c,m,s.picture,i),t.picture.kind==="spectrogram"&&Lc(e,n,o,a,s,i);return}n.inputs.forEach(({label:c,members:m},u)=>{let h=s.inputs[u];if(!h||n.looksBack&&m[0]>=l[0])return;let p=o.inputs.includes(u)?a[u]??0:0;if(p!==0){let f=p>0?i.hue:i.minus;e.rect(h.x,h.y,h.width,h.height,{fill:f,opacity:.1+.35*Math.abs(p),radius:6})}Pi(e,c,h,s.size,i,{fill:i.ink,weight:p!==0?600:400})})}function Lc(e,t,n,o,r,s){let i=o.reduce((h,p,f)=>p>o[h]?f:h,0),a=n.isWritten?i:n.inputs[n.inputs.length-1],l=r.inputs[a??0];if(!l||!o.length)return;let c=l.x+l.width/2;e.path(`M${c} ${l.y-4}v${l.height+8}`,{stroke:s.accent,width:2});let m=c<Ri+20?"start":c>r.picture.picture.width?"end":"middle",u=m==="start"?Math.max(c,Ri):c;e.text(u,l.y-12,t.inputs[a].label,{fill:s.accent,size:12,anchor:m})}function Tc(e,t,n,o,r){t.outputs.forEach(({label:s,probability:i},a)=>{let l=o.outputs[a],c=l.y+l.height,m=a===n.output;if(a>n.output||m&&!n.isWritten){e.path(`M${l.x+4} ${c-4}h${l.width-8}`,{stroke:r.rule,width:2});return}let u=.04+.4*i;e.rect(l.x,l.y,l.width,l.height,{fill:r.hue,opacity:u,radius:6}),m&&e.rect(l.x,l.y,l.width,l.height,{stroke:r.accent,width:2,radius:6}),Pi(e,s,l,o.size,r,{fill:r.ink,weight:m?600:400});let h=Z(i);(m||be(h,12,r.font)<=l.width+4)&&e.text(l.x+l.width/2,c+10,h,{fill:r.muted,size:12,anchor:"middle"})})}function Sc(e,t,n,o,r,s){let{bars:i,tokens:a}=t.outputs[n.output],{x:l,y:c,width:m}=o.bars,u=Math.min(150,m*.36),h=m-u-74,p=t.isWritten?"What could come next":"What it could be";if(e.text(l,c+10,p,{fill:r.muted,size:13}),i.slice(0,No).forEach((w,x)=>{let L=c+pt+x*Ct+Ct/2,$=w.isChosen?700:400;w.isChosen&&e.rect(l,L-Ct/2+1,m,Ct-2,{fill:r.hue,opacity:.14,radius:4});let M=me(w.label,15,r.font,u-12);e.text(l+u-8,L,M,{fill:r.ink,size:15,weight:$,anchor:"end"});let T=Math.max(1.5,h*w.probability*s);e.rect(l+u,L-7,T,14,{fill:r.hue}),e.text(l+u+T+7,L,Z(w.probability),{fill:r.ink,size:13,weight:$})}),a.length<2)return;let f=a.map(w=>`${w.label} ${Z(w.probability)}`).join(" · "),g=c+pt+Math.min(No,i.length)*Ct+12,b=me(`Its ${a.length} tokens: ${f}`,13,r.font,m);e.text(l,g,b,{fill:r.muted,size:13})}function Pi(e,t,n,o,r,s){let i=me(t,o,r.font,n.width);e.text(n.x+n.width/2,n.y+n.height/2,i,{...s,size:o,anchor:"middle"})}var Ec=700,Ac=1400,Cc=1e3,Rc=260,_i={name:"story",title:"Story",applies:vi,mount:Dc},Uo=!1,Fi=()=>matchMedia("(prefers-reduced-motion: reduce)").matches;function Dc({doc:e,store:t,blobs:n}){let o=Io(e,B=>n.read(B)),r=d("p",{class:"fact caption",role:"status"}),s=new ce("The story. Arrow keys step, Space plays and pauses, Home and End go to the ends."),i=d("span",{class:"small count"}),a=d("button",{type:"button","aria-label":"Back",onclick:()=>H(-1)},"◀"),l=d("button",{type:"button","aria-label":"Next",onclick:()=>H(1)},"▶|"),c=d("button",{type:"button",class:"play",onclick:()=>R()}),m=[.5,1].map(B=>d("button",{type:"button",onclick:()=>I(B)},`${B}×`)),u=d("div",{class:"strip",role:"group","aria-label":"The model"}),h=d("ul",{class:"findings"}),p=d("ol"),f=on(V),g=d("div",{class:"controls"},d("div",{class:"player"},a,c,l),d("div",{class:"choice",role:"group","aria-label":"Speed"},...m),i,he(()=>`story.${S()+1}`,()=>L,(B,re)=>L&&On(B,e,o,o.steps[S()],v(),L,re)),f),b=d("div",{class:"telling"},g,r,d("div",{class:"scroller"},s.element)),w=e.picture?.kind==="image"&&!o.looksBack,x=d("section",{class:w?"story small-picture":"story","aria-label":"Story"},b,d("div",{class:"aside"},u,d("h2",{},"What happened"),h),d("details",{class:"transcript"},d("summary",{},"Transcript"),p),d("p",{class:"small"},`Darker words: the model was surer. ${Fc(o)}`)),L=null,[$,M,T]=[1,!1,!1],A,k=0,v=()=>e.picture?n.read(e.picture.pixels):void 0,E=()=>o.steps.length-1,S=()=>Math.min(t.state.beat??E(),E()),O=B=>t.set({beat:B>=E()?null:Math.max(0,B)}),H=B=>{y(),O(S()+B)};function D(){if(clearTimeout(A),!M||!x.isConnected)return y();A=setTimeout(()=>{O(S()+1),S()>=E()?y():D()},Ec/$)}function y(){clearTimeout(A),M=T=!1,G()}function C(){M=!0,S()>=E()&&O(0),G(),D()}let R=()=>M?y():C(),I=B=>{$=B,G(),M&&D()};function G(){c.textContent=M?"Pause":"Play",m.forEach((B,re)=>B.setAttribute("aria-pressed",String([.5,1][re]===$))),i.textContent=`Step ${S()+1} of ${o.steps.length}`,a.disabled=S()<=0,l.disabled=S()>=E()}let P=B=>{if(!x.isConnected)return document.removeEventListener("keydown",P);let re=B.target;if(!(re===document.body||x.contains(re))||B.ctrlKey||B.metaKey||B.altKey||B.key===" "&&re.closest("button, summary, a"))return;let pe={ArrowRight:()=>H(1),ArrowLeft:()=>H(-1),Home:()=>H(-1/0),End:()=>H(1/0)," ":R};Object.hasOwn(pe,B.key)&&(B.preventDefault(),pe[B.key]())};document.addEventListener("keydown",P);function N(B){if(B.size===0){o=Io(e,pe=>n.read(pe));let ue=Ei(e,o);X(h,...ue.map(_)),X(p,...o.steps.map(pe=>d("li",{},pe.text))),L=Wo(e,o,v(),Math.max(260,b.clientWidth-4),ae())}else if(!B.has("beat"))return;G(),f.hidden=o.steps.length<2;let re=o.steps[S()];r.textContent=re.text,X(u,...W()),cancelAnimationFrame(k),B.has("beat")&&!Fi()?z(performance.now()):j(1),Uo||(Uo=T=t.state.beat===null&&!Fi()&&o.steps.length>1,Uo=!0),T&&o.outputs[0].shares.length>0&&(T=!1,C())}function z(B){let re=Math.min(1,(performance.now()-B)/Rc);j(1-(1-re)**3),re<1&&(k=requestAnimationFrame(()=>z(B)))}function j(B){let re=L,ue=o.steps[S()];s.draw(re.width,re.height,(pe,Pe)=>On(pe,e,o,ue,v(),re,Pe,B))}function V(){let[B,re]=[o,v()],ue=Wo(e,B,re,Cc,ae());return{name:"story",caption:zn(),width:ue.bars.x+ue.bars.width,height:ue.height,count:B.steps.length,delay:Ac,draw:(pe,Pe,ht)=>On(Pe,e,B,B.steps[pe],re,ue,ht),tell:pe=>B.steps[pe].text}}function _(B){let re=o.steps.findIndex(({output:pe,isWritten:Pe})=>pe===B.output&&Pe),ue=[B.output!==void 0&&o.outputs.length>1?d("button",{type:"button",onclick:()=>(y(),O(re))},"Show"):null,B.view&&te(B.view)?d("button",{type:"button",onclick:()=>U(B.view)},"Details"):null];return d("li",{"data-kind":B.kind},d("span",{dir:"auto"},B.text),...ue)}function U(B){let re=B==="break"?Ke(e,e.attention):null,ue=re?[[re.group.name,...re.place].join(".")]:t.state.headsOff;t.set({view:B,hover:null,locked:null,headsOff:ue})}function W(){let{width:B,layers:re,vocabulary:ue}=e.model,pe=o.outputs[o.steps[S()].output],Pe=Et(e),ht=Object.entries(re).map(([ne,ee])=>{let le=e.attention.find(({name:Oe})=>Oe===`${ne}.cross`)??e.attention.find(({name:Oe})=>Oe===`${ne}.self`),ye=ne==="encoder"?e.sequences.source?.length??0:pe.places[0]??Pe,$e=`${ee} ${ee===1?"layer":"layers"}`;return Hi(ne,`${ye} × ${B}`,$e,le?()=>oe(le):null)}),F=e.predictions[0],q=F?.position!=null&&e.sequences.source?.[F.position]?.role==="special",Q=o.isWritten||q?ue.target??ue.source:F?.labels.length,J=["predictions","sampling","search"].find(te),se=o.isWritten||q?"tokens":"labels";return ht.push(Hi("softmax",(Q??0).toLocaleString("en"),se,J?()=>U(J):null)),ht.flatMap((ne,ee)=>ee>0?[d("span",{"aria-hidden":"true"},"→"),ne]:[ne])}function oe(B){let re=e.picture&&B.columns==="source"?e.picture.kind:"heads",[ue,pe]=B.default_head;t.set({view:re,group:B.name,layer:ue,head:pe,query:null,hover:null,locked:null})}let te=B=>Pc[B]?.(e)??e.attention.length>0;return{element:x,update:N}}var Pc={search:e=>e.search!==null&&e.search.step.length>1,sampling:e=>(e.sampling?.steps.length??0)>0,predictions:e=>e.predictions.length>0,ablation:e=>e.ablation!==null,attribution:e=>e.attribution!==null};function Fc({evidence:e,outputs:t}){let n=t.length===Zt?` The story has the first ${Zt} words.`:"";return e==="attribution"?`Ribbons show how much a word raises (blue) or lowers (purple) the result, by integrated gradients.${n}`:`Ribbons show attention: where the model looked, not why it decided.${n}`}function Hi(e,t,n,o){let r=[d("b",{},e),d("span",{},t),d("span",{class:"small"},n)];return o?d("button",{type:"button",onclick:o},...r):d("div",{},...r)}var Hc=[Ns,_i,oi,ri,ii,As,ws,Kr,ki,ai,as,ms,ui,xi,bi],Go=null;function Oi(e,t){Go?.abort(),Go=new AbortController;let{signal:n}=Go;In(e);let o=Hc.filter(M=>M.applies(e)),r=o.map(M=>M.name),s=Qr(e,r[0]??""),i=new gn(ro(location.hash,s,e,r)),a=new ke(M=>e.blobs[M]?Be(e.blobs[M]):Promise.reject(new Error(`No blob ${M}.`)),()=>i.notify()),l={doc:e,store:i,blobs:a,live:new vt(e)},c=e.session&&l.live.available?qo(e,l.live,M=>_c(M,t)):null,m=ts(o,M=>i.set({view:M,hover:null,locked:null})),u=d("div",{id:"panel",role:"tabpanel","aria-labelledby":`tab-${i.state.view}`}),h=Jo(i,n),p=Yr(()=>oo(i.state,s)),f=d("div",{class:"tools"},h,...p.elements);X(t,Ic(e,f,c),d("main",{},...m.elements,u,Bc(e)));let g=null,b="",w=M=>{let{view:T}=i.state;T!==b&&(b=T,g=o.find(A=>A.name===T)?.mount(l)??null,X(u,g?.element??d("p",{},"This document has nothing to show.")),u.setAttribute("aria-labelledby",`tab-${T}`),m.mark(T),p.clear(),M=new Set),g?.update(M)};i.subscribe(w),w(new Set),Oc(i,s,e,r,n);let x=()=>i.notify(),L=window.innerWidth,$=()=>{window.innerWidth!==L&&(L=window.innerWidth,x())};window.addEventListener("resize",$,{signal:n}),matchMedia("(prefers-color-scheme: dark)").addEventListener("change",x,{signal:n})}function _c(e,t){e.against&&!location.hash.startsWith("#compare")&&history.pushState(null,"","#compare"),document.title=`${[e.text,e.output].flatMap(n=>n?[Y(n,60)]:[]).join(" → ")} · Regard`,Oi(e,t),t.querySelector(".box textarea")?.focus()}function Oc(e,t,n,o,r){let s,i=l=>{if(r.aborted)return;let c=oo(e.state,t);if(c!==(location.hash||`#${t.view}`))try{history[l?"pushState":"replaceState"](null,"",c)}catch{}};e.subscribe(l=>{clearTimeout(s),l.has("view")?i(!0):s=setTimeout(()=>i(!1),100)});let a=()=>{clearTimeout(s),e.set({...ro(location.hash,t,n,o),hover:null})};window.addEventListener("hashchange",a,{signal:r})}function Ic(e,t,n){let{model:o}=e,r=Object.entries(o.layers).map(([l,c])=>`${c} ${l} ${c===1?"layer":"layers"}`),s=o.parameters>0?`${o.parameters.toLocaleString("en")} parameters`:"",i=[o.name,s,...r].filter(Boolean),a=Br(e);return d("header",{},d("div",{},n,e.output?d("p",{class:"input",dir:"auto",hidden:n!==null},Y(e.text,240)):null,d("h1",{},d("bdi",{},Y(et(e),160)),a?d("span",{class:"sure",title:a.title},` ${a.text}`):null),d("p",{class:"small"},Y(i.join(" · "))),...e.notes.map(l=>d("p",{class:"note"},Y(l)))),t)}function Bc(e){let t=Nr(e);return d("footer",{class:"small"},d("p",{},`Made with Regard ${e.model.regard}`,t?": ":".",t?d("code",{dir:"auto"},Y(t)):null))}document.head.append(d("style",{},Jr+Zr));var Nc=document.getElementById("document"),zo=document.getElementById("app")??document.body.appendChild(d("div",{id:"app"}));try{let e=JSON.parse(Nc?.textContent??"");Vo(e)?Rr(e,zo):Oi(e,zo)}catch(e){throw X(zo,d("p",{role:"alert"},`This page cannot be shown: ${e instanceof Error?e.message:e}`)),e}})();
